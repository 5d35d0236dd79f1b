// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hwt::internal {

/// The core's numbers that were measured, or that trade one promise of README.md against another. Each names the figure
/// or the promise that it serves. After a change, measure that figure again: `./run bench --check`, and perf/README.md.
struct Tuning {
  // --- A pass of the worker over the inbox

  /// The most new timeouts of a pass. Netty's bound: a flood of new timeouts must not keep the worker from expiring.
  /// Dead entries count as well.
  static constexpr std::size_t kTransfers = 100'000;
  /// The most of them from places in which nothing is due soon. They take half a millisecond.
  static constexpr std::size_t kFarTransfers = 8192;
  /// The most recheck requests of a pass, each of which touches two cold places in memory.
  static constexpr std::size_t kRecheckTransfers = 8192;
  /// A round of turns of all places takes half of a pass at most, so that each place has a turn in each pass.
  static constexpr std::size_t kRound = kTransfers / 2;
  static constexpr std::size_t kRecheckRound = kRecheckTransfers / 2;
  /// Far places have one turn after so many of near ones, because a cancelled() may wait there.
  static constexpr std::size_t kNearTurns = 16;
  /// The most entries that the worker takes in one call.
  static constexpr std::size_t kBatch = 256;
  /// A walk over nodes prefetches each one when it is this far ahead. It hides the latency of the memory.
  static constexpr std::size_t kAhead = 8;

  // --- The worker's round

  /// With short ticks, the worker runs about this many tasks before it reads the clock and looks into the inbox again.
  /// stats() computes one lag for all of them.
  static constexpr std::size_t kTasksAtOnce = 64;
  /// A pass leaves far timeouts to their producers. A producer that does nothing more leaves dead entries behind, so a
  /// pass takes everything at this interval, in ns.
  static constexpr std::int64_t kTakesEverythingEvery = 1'000'000'000;
  /// The worker makes a pass for the requests that can wait about once in this time, in ns, so that they do not keep it
  /// busy.
  static constexpr std::int64_t kSoon = 1'000'000;
  /// A worker or a driven timer lacks memory, or its producers are sifting: the longest and the shortest time, in ns,
  /// until it tries again. The shortest one is also how long NodePool::close() sleeps between two looks.
  static constexpr std::int64_t kNap = 1'000'000;
  static constexpr std::int64_t kShortNap = 50'000;

  // --- A timer that its caller drives

  /// The most steps of the Collector in one call, because the calling thread has other things to do.
  static constexpr int kStepsAtOnce = 8;
  /// While a producer sifts its place, no pass can take from it. It looks at kSiftStep entries, which takes
  /// microseconds. But it may be preempted, and other producers may sift next. A function that must take everything
  /// waits for this number of short naps, which is a second. run_due() leaves the place for its next call instead.
  static constexpr int kNaps = 20'000;
  /// run_due() takes as many far entries as this number of passes: as many as a producer may have when it calls for
  /// them (kSparse).
  static constexpr int kFarPasses = 8;
  /// How often a call begins a pass for timeouts that a cancelled() schedules. Bounded, because other threads may
  /// schedule all the time.
  static constexpr int kBegins = 8;

  // --- A producer

  /// The entries before the first sift. A thread that uses a timer once, as many do, gets memory for no more.
  static constexpr std::size_t kFirst = 24;
  /// The fewest entries that are worth another sift.
  static constexpr std::size_t kFewest = 256;
  /// The most entries of one array of an EntryBuffer.
  static constexpr std::size_t kMaxArray = 65536;
  /// A step of a sift looks at this many entries, so that no call takes long. The exception is the last step, which
  /// also frees the emptied arrays: about 1.7 ms of CPU time for each million entries. The producer moves at most so
  /// many to the queue at a time.
  static constexpr std::size_t kSiftStep = 16 * kFewest;
  /// A sift ends when there are four times as many entries as the last one kept, so it costs little for each timeout.
  /// But it ends at this number already, or at twice as many as the last one kept if that is more. Entries take memory,
  /// and the worker must be called in time.
  static constexpr std::size_t kSparse = 65536;
  /// When this many entries were alive at two sifts, the producer wakes the worker, because they belong in the wheel.
  /// Younger ones do not count: most of them are cancelled soon, and a cancel is cheaper before the wheel. The number
  /// was measured: docs/decisions.md, "The youngest entries are in an array". Producer::sift() says when a producer is
  /// settled no longer; near_first_test tests both. Its case CallsTheWorkerAgain... begins with 150,000
  /// timeouts because of this number.
  static constexpr std::size_t kSettled = 60000;
  /// The producer also wakes the worker when it has cancelled this many queued timeouts of other producers. A move to
  /// an earlier deadline wakes the worker after this many recheck requests of any kind.
  static constexpr std::size_t kCalls = 16384;
  /// A cancel of a timeout in the wheel wakes the worker after this many recheck requests of any kind. Only the worker
  /// can give the memory of those nodes back. Promise 7 of README.md states it.
  static constexpr std::size_t kRecheckCalls = 4096;

  // --- Memory

  /// The most slabs of a region, and chunks of another. Allocators waste up to one to align each region.
  static constexpr std::size_t kMaxSlabsPerRegion = 64;  // 4 MiB
  static constexpr std::size_t kChunksPerRegion = 64;    // 16 KiB
  /// The most free nodes that a pool keeps for itself; see Depot::share(). With so many, the cost of going to the depot
  /// is negligible for each node.
  static constexpr std::int64_t kMaxFree = 2048;
  /// The most nodes that other threads have given back to a pool and that it has not taken yet.
  static constexpr std::int64_t kMaxReturned = 4096;
  /// A pool gives the depot this many free nodes at a time.
  static constexpr std::int64_t kFreeBatch = 256;
  /// The most ended nodes that the worker holds back before it gives them to their pool in one batch.
  static constexpr std::size_t kHeldBack = 256;
  /// The fewest free nodes that are worth a collection: 1 MiB.
  static constexpr std::size_t kWorthwhile = 16384;
  /// The worker is woken for the Collector only when at least this many more nodes are free than the last collection
  /// has kept.
  static constexpr std::size_t kGrown = 1024;
  /// The Collector's wait between two looks grows in proportion to the kept nodes, because a collection visits them
  /// again. With this many it is twice as long.
  static constexpr std::int64_t kSlowly = std::int64_t{1} << 21;
  /// The bounds of one step of the Collector: about a millisecond, if the nodes are in no cache.
  static constexpr std::int64_t kNodesAtOnce = 2048;
  static constexpr int kRunsAtOnce = 1024;
  static constexpr int kPoolsAtOnce = 256;
  static constexpr int kSlabsAtOnce = 8;

  // --- The hashed wheel

  /// A walk looks at no more items than this to correct a guess. They take half a millisecond.
  static constexpr std::uint32_t kMostLookedAt = 8192;
  /// A walk tidies this many buckets too, because a bucket may have holes and no removals. It takes some 10 us longer
  /// at most.
  static constexpr int kTidiedByWalk = 16;

  // --- The clock

  /// With a shorter tick, an estimate by the cycle counter would be late by more than some hundredths of a tick.
  static constexpr std::chrono::microseconds kShortestTickOfCycles{100};
};

}  // namespace hwt::internal
