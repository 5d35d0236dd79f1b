#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "hashed_wheel_timer/internal/core/tick_grid.h"
#include "hashed_wheel_timer/internal/engine/driver.h"
#include "hashed_wheel_timer/internal/engine/threaded_engine.h"
#include "hashed_wheel_timer/internal/platform/exact_sleeps.h"
#include "hashed_wheel_timer/internal/platform/request_clock.h"
#include "hashed_wheel_timer/internal/report/log.h"

namespace hwt::internal {

/// The worker thread: when it makes a pass over the inbox (Driver::transfer), and how long it sleeps. ThreadedEngine
/// calls turn() once on that thread. turn() repeats these steps until the timer stops:
///   1. makes a pass, if must_look()
///   2. expires past ticks in which timeouts are due, if there are any
///   3. makes a pass for cancelled nodes, if step 1 made none and the time for it has come
///   4. otherwise makes a step of the Collector, or sleeps, if no due tick is past and the pass did not end as More
///
/// A pass over the inbox may take longer than a short tick. The heavy fence alone takes more than a microsecond and
/// interrupts the producers, and each entry leaves a producer's cache. So only expiry follows the tick. A pass that is
/// only for cancelled nodes comes about once in Inbox::kSoon, and the worker processes the past ticks of that time
/// together. If the tick is that long or longer, it processes one tick at a time.
///
/// A worker that is woken for an earlier deadline leaves the timeout in the inbox and sleeps until that deadline. If
/// the timeout is cancelled, the inbox still remembers its deadline. The wheel would forget it, and the worker would
/// announce a later end of its next sleep. On a quiet server each new request would then wake the worker.
template <Wheel W>
class WorkerLoop final : public ThreadedEngine {
 public:
  WorkerLoop(Timer& timer, const Options& options, std::int64_t wheel_size,
             std::int64_t unused_for = Collector::kUnusedFor)
      : ThreadedEngine(timer, options),
        tick_duration_(options.tick_duration.count()),
        ticks_at_once_(std::max<Tick>(Inbox::kSoon / tick_duration_, 1)),
        collects_every_(std::max<std::int64_t>(Inbox::kSoon - tick_duration_, 0)),
        counts_cycles_(core().cycles().wanted()),
        clock_(core().cycles()),
        driver_(core(), options, wheel_size, unused_for) {}

 private:
  TickGrid grid() noexcept { return {core().lifecycle().start_time(), tick_duration_}; }
  bool is_tick_short() const noexcept { return tick_duration_ < Inbox::kSoon; }

  using Pass = typename Driver<W>::Pass;

  /// The loop of the worker. Its steps have the order of Netty's Worker.run (4.1, and 4.2 after #15899). Unlike Netty
  /// it skips ticks in which nothing is due, and sleeps while nothing is due.
  void turn() noexcept override {
    // 50 us of slack do not matter for a tick of a millisecond, and the processor can sleep longer.
    const ExactSleeps exact(is_tick_short());
    took_all_ = clock_.now();
    while (core().running()) {
      const std::int64_t now = clock_.now();
      if (counts_cycles_ && !core().cycles().wanted()) [[unlikely]]
        tell_that_clocks_disagree(now);
      const Tick current = grid().at(now);
      past_before_ = std::min(past_before_, current);  // sleep() has set a later tick, and the sleep ended early
      const bool look = must_look(now, current);
      if (look) transfer(now);
      if (!core().running()) break;  // a cancelled() may have destroyed the timer
      const Tick due = driver_.next_due();
      // A pass for cancelled nodes: not if this round has made a pass, not too often, and only if there is work.
      const bool collect = looked_ != now && now - looked_ >= collects_every_ && has_work(current);
      if (due < current) {
        work_off(due, current);
        if (!core().running()) break;
      }
      if (collect) {
        transfer(now);
      } else if (due >= current && pass_ != Pass::More) {
        // The collector may step only right after a pass.
        if (look && pass_ == Pass::Done && driver_.collector().step(now)) continue;
        sleep(now, due);
      }
    }
  }

  /// Returns whether the worker must make a pass before it processes ticks. All timeouts that are due before the
  /// current tick must be in the wheel then, so that they run in the order of their ticks. The reasons for a pass, as
  /// the condition lists them:
  ///   - the latest pass is unfinished
  ///   - a thread asks for a pass within this tick
  ///   - a timeout in the inbox is due before the current tick
  ///   - entries have been left in the inbox for long enough
  ///   - the collector is due, and may step only after a pass
  ///   - with ticks of Inbox::kSoon or more, there is work. With shorter ticks, turn() makes that pass less often
  bool must_look(std::int64_t now, Tick current) noexcept {
    return is_unfinished() || driver_.is_urgent() || driver_.next_waiting() < current || take_all_at() <= now ||
           driver_.collector().next_step(now) <= now || (!is_tick_short() && has_work(current));
  }

  /// Makes a pass. It takes everything if a note asks for it, the collector is due or kTakesAllEvery has passed, or if
  /// it continues a pass that takes everything. (The collector needs Pass::Done, which only such a pass returns.)
  void transfer(std::int64_t now) noexcept {
    takes_all_ = (takes_all_ && is_unfinished()) || driver_.is_urgent() || core().inbox().all_awaited() ||
                 driver_.collector().next_step(now) <= now || now - took_all_ >= kTakesAllEvery;
    pass_ = driver_.transfer(past_before_, now, takes_all_);
    // The pass has taken everything that is due before the current tick. So if the next pass finds a timeout that was
    // due before, the timeout came after this pass.
    if (!is_unfinished()) past_before_ = grid().at(now);
    if (pass_ == Pass::Done) took_all_ = now;
    looked_ = now;
  }

  /// Returns whether another pass must follow without waiting for anything new.
  bool is_unfinished() const noexcept { return pass_ > Pass::Near; }

  /// Returns when a pass must take everything: entries that the latest pass has left, or that other threads have
  /// cancelled. Their producers may never sift.
  std::int64_t take_all_at() noexcept {
    const bool left = pass_ == Pass::Near && driver_.is_waiting();
    return left || core().inbox().has_dead() ? took_all_ + kTakesAllEvery : kForever;
  }

  void tell_that_clocks_disagree(std::int64_t now) noexcept {
    counts_cycles_ = false;
    took_all_ = std::min(took_all_, now);  // the worker's time has gone back
    looked_ = std::min(looked_, now);
    std::array<char, 160> line;
    std::snprintf(line.data(), line.size(),
                  "the cycle counter and steady_clock disagree; the timer reads steady_clock from now on, and runs all "
                  "tasks %.3f ms later",
                  static_cast<double>(core().cycles().behind()) / 1e6);
    warn(line.data());
  }

  /// Returns whether the wheel has a past due tick, or a thread asks for a pass within Inbox::kSoon.
  bool has_work(Tick current) const noexcept { return driver_.next_due() < current || driver_.is_awaited(); }

  /// Expires some past ticks. If the latest pass ended as Pass::More, expires all of them, because otherwise the worker
  /// would make another pass before it expires the next ones.
  void work_off(Tick due, Tick current) noexcept {
    // By steady_clock, so that lateness() and last_lag include CycleRate::behind().
    std::int64_t begun = clock_.steady(clock_.now());
    do {
      const typename Driver<W>::Expired expired =
          driver_.expire_before(current - due > ticks_at_once_ ? due + ticks_at_once_ : current, begun, kTasksAtOnce);
      begun = clock_.steady(clock_.now());
      // If no task ran, there is no lag: timeouts were only skipped, or moved down a level from a slot that has long
      // begun.
      if (expired.tasks != 0) {
        core().counters().note_lag(std::chrono::nanoseconds(begun - grid().end_of(expired.first)));
      }
      core().counters().ticks.add(expired.ticks);
      due = driver_.next_due();
    } while (pass_ == Pass::More && due < current && core().running());
  }

  /// Sleeps until the end of the next tick with a due timeout, in the wheel or in the inbox. Sleeps for a shorter time
  /// if a note in the inbox asks for a pass, or if next_pass() is earlier.
  void sleep(std::int64_t now, Tick due) noexcept {
    const Tick current = grid().at(now);
    const auto wanted = [&] {
      const Tick tick = std::min(due, driver_.next_waiting());
      if (driver_.is_urgent()) return std::min(tick, current);
      if (!driver_.is_awaited()) return tick;
      // A note that came while the worker was awake does not end this sleep. So the sleep must end in time for the pass
      // that the note asks for.
      return std::min(tick, std::max(current, grid().at(looked_ + collects_every_)));
    };
    // The first announcement, before the heavy fence, has the deadlines that are known already. Otherwise each thread
    // that schedules during the fence would wake the worker, however late its deadline is.
    const Tick known = wanted();
    if (known < current) return;
    // From now on a thread that schedules a timeout of an earlier tick wakes the worker. Nothing leaves the inbox
    // meanwhile, so the result is `known` or earlier.
    const Tick until = announce_sleep(core().sleeper(), grid(), known, current, wanted);
    // Retracting needs no fence: at worst a thread wakes the worker in vain.
    if (until < current) return core().sleeper().retract();
    core().sleeper().sleep_until(clock_.steady(std::min(grid().end_of(until), next_pass(now, current))));
    core().counters().wakeups.add(1);
    // A timeout of a tick before `until` that came in time has ended the sleep early. Then turn() lowers past_before_
    // to the current tick. If the sleep was not ended early, such a timeout came too late, and is due at `until`. After
    // an unfinished pass that is not certain, because the pass has left older timeouts in the inbox.
    if (!is_unfinished()) past_before_ = until;
  }

  /// Returns when the worker makes the next pass if no thread wakes it. After an unfinished pass (HeldUp or Starved)
  /// that is the end of the current tick, but at least kShortNap and at most kNap from now. Until then a producer may
  /// have sifted its place, or memory may be free again.
  std::int64_t next_pass(std::int64_t now, Tick current) noexcept {
    if (is_unfinished()) return std::min(now + kNap, std::max(grid().end_of(current), now + kShortNap));
    return std::min(driver_.collector().next_step(now), take_all_at());
  }

  Node* cancel_all() noexcept override { return driver_.cancel_all(); }

  // A pass leaves far timeouts to their producers. A producer that does nothing more leaves dead entries behind, so a
  // pass takes everything at this interval.
  static constexpr std::int64_t kTakesAllEvery = 1'000'000'000;
  // The longest and the shortest sleep of a worker that lacks memory, or that waits for a producer to sift.
  static constexpr std::int64_t kNap = 1'000'000;
  static constexpr std::int64_t kShortNap = 50'000;
  // With short ticks, the worker runs about this many tasks before it reads the clock and looks into the inbox again.
  // stats() computes one lag for all of them.
  static constexpr std::size_t kTasksAtOnce = 64;

  const std::int64_t tick_duration_;
  const Tick ticks_at_once_;
  const std::int64_t collects_every_;  // kSoon less a tick, because a sleep ends at the end of a tick
  // A new timeout whose deadline is before this tick is due at this tick. Its deadline had passed when it was
  // scheduled, or the worker woke up too late for it.
  Tick past_before_ = 0;
  Pass pass_ = Pass::More;     // how the latest pass ended
  bool takes_all_ = true;      // the latest pass was to take everything, not only near deadlines
  std::int64_t looked_ = 0;    // the time of the latest pass
  std::int64_t took_all_ = 0;  // the time of the latest pass that took everything
  bool counts_cycles_;
  WorkerClock clock_;
  Driver<W> driver_;
};

}  // namespace hwt::internal
