// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/histogram.h"
#include "hashed_wheel_timer/internal/handover/producer_counters.h"
#include "hashed_wheel_timer/internal/time/clock.h"
#include "hashed_wheel_timer/internal/wheel/wheel_item.h"
#include "hashed_wheel_timer/stats.h"

namespace hwt::internal {

/// A LatencyHistogram that only the worker writes. Any thread may read it meanwhile.
class LatenessRecord {
 public:
  /// Adds `begun` minus `deadline`, or zero if that is negative. Only the worker calls it.
  void add(std::int64_t begun, std::int64_t deadline) noexcept {
    const std::uint64_t late = static_cast<std::uint64_t>(begun) - static_cast<std::uint64_t>(deadline);
    const auto sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum_.load(std::memory_order_relaxed)) + late);
    // As an unsigned number, a negative lateness and one beyond the range are larger than the last end, too. `sum` is
    // negative if it has overflowed.
    if (late > static_cast<std::uint64_t>(Buckets::kLastEnd) || sum < 0) [[unlikely]]
      return add_rare(begun, deadline);
    store(static_cast<std::int64_t>(late), sum, Buckets::index_within(late));
  }

  /// Returns a copy. It has all values that were added before, if the caller has synchronized with the worker since.
  /// Values that are added meanwhile may be included or not. Sum and maximum may include values that are not counted
  /// yet, never the other way round. Any thread.
  LatencyHistogram snapshot() const noexcept {
    LatencyHistogram result;
    for (std::size_t i = 0; i < Buckets::kCount; ++i) {
      result.counts_[i] = counts_[i].load(std::memory_order_acquire);
      result.count_ += result.counts_[i];
    }
    result.sum_ = std::chrono::nanoseconds(sum_.load(std::memory_order_relaxed));
    result.max_ = std::chrono::nanoseconds(max_.load(std::memory_order_relaxed));
    return result;
  }

 private:
  using Buckets = detail::LatencyBuckets;

  void store(std::int64_t late, std::int64_t sum, std::size_t bucket) noexcept {
    if (late > max_.load(std::memory_order_relaxed)) max_.store(late, std::memory_order_relaxed);
    sum_.store(sum, std::memory_order_relaxed);
    std::atomic<std::uint64_t>& count = counts_[bucket];
    // release: with the acquire in snapshot(), a thread that sees a value counted finds it in the maximum and the sum.
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  [[gnu::noinline, gnu::cold]] void add_rare(std::int64_t begun, std::int64_t deadline) noexcept {
    std::int64_t late = 0;
    // A deadline may be further in the past than a duration goes.
    if (deadline < begun) late = deadline < 0 && begun > kMost + deadline ? kMost : begun - deadline;
    const std::int64_t sum = sum_.load(std::memory_order_relaxed);
    store(late, late > kMost - sum ? kMost : sum + late, Buckets::index_of(late));
  }

  static constexpr std::int64_t kMost = (std::chrono::nanoseconds::max)().count();

  // The worker's alone to write.
  std::atomic<std::int64_t> max_{0};
  std::atomic<std::int64_t> sum_{0};
  std::array<std::atomic<std::uint64_t>, Buckets::kCount> counts_{};
};

/// The counters of a timer that do not belong to a producer. Adds up the counters of all producers.
class alignas(kCacheLine) Counters {
 public:
  // Only the worker writes these.
  OwnedCounter expired;
  OwnedCounter unprocessed;
  OwnedCounter ticks;
  OwnedCounter wakeups;
  OwnedCounter slow_tasks;
  OwnedCounter busy;      // ns
  OwnedCounter in_tasks;  // ns
  LatenessRecord lateness;
  void note_lag(std::chrono::nanoseconds lag) noexcept {
    last_lag_.store(lag, std::memory_order_relaxed);
    if (lag > max_lag_.load(std::memory_order_relaxed)) max_lag_.store(lag, std::memory_order_relaxed);
  }
  /// Notes that the worker has been running tasks since `time`. relaxed: it orders nothing.
  void note_running_since(std::int64_t time) noexcept { running_since_.store(time, std::memory_order_relaxed); }
  void note_none_running() noexcept { note_running_since(kForever); }
  /// Notes the number of entries that the worker has dequeued and not yet handled.
  void note_in_hand(std::size_t entries) noexcept { in_hand_.store(entries, std::memory_order_relaxed); }

  // Any thread may call these.
  void note_task_error() noexcept { task_errors_.fetch_add(1, std::memory_order_relaxed); }
  /// Counts a cancel by a thread that has no memory for a producer. release: see OwnedCounter::add.
  void note_cancelled_without_producer() noexcept {
    cancelled_without_producer_.fetch_add(1, std::memory_order_release);
  }

  /// Returns only the numbers of timeouts: scheduled, rejected, ended and pending. Reads few cache lines of each
  /// producer. `producers` is a ProducerSet.
  template <class Producers>
  TimerStats read_timeouts(const Producers& producers) const noexcept {
    TimerStats stats;
    // Reads the counters of ends before those of beginnings (with acquire), so `pending` is never negative.
    stats.expired = expired.get();
    stats.unprocessed = unprocessed.get();
    stats.cancelled = cancelled_without_producer_.load(std::memory_order_acquire);
    producers.for_each([&](const auto& producer) { producer.counters.add_to(stats); });
    producers.for_each([&](const auto& producer) { stats.scheduled += producer.counters.scheduled.get(); });
    stats.pending = stats.scheduled - stats.expired - stats.unprocessed - stats.cancelled;
    return stats;
  }

  /// Returns all statistics but counts_cycles. `now` is the time of the timer's clock.
  template <class Producers>
  TimerStats read(const Producers& producers, std::int64_t now) const noexcept {
    TimerStats stats = read_timeouts(producers);
    std::size_t queued = 0;
    producers.for_each([&](const auto& producer) { queued += producer.place.size(); });
    stats.ticks = ticks.get();
    stats.wakeups = wakeups.get();
    stats.backlog = static_cast<std::int64_t>(queued + in_hand_.load(std::memory_order_relaxed));
    stats.task_errors = task_errors_.load(std::memory_order_relaxed);
    stats.last_lag = last_lag_.load(std::memory_order_relaxed);
    stats.max_lag = max_lag_.load(std::memory_order_relaxed);
    stats.slow_tasks = slow_tasks.get();
    stats.in_tasks = std::chrono::nanoseconds(in_tasks.get());  // first, so that it is never more than `busy`
    stats.busy = std::chrono::nanoseconds(busy.get());
    stats.running_for = running_for(now);
    return stats;
  }

 private:
  std::chrono::nanoseconds running_for(std::int64_t now) const noexcept {
    const std::int64_t since = running_since_.load(std::memory_order_relaxed);
    if (since == kForever) return std::chrono::nanoseconds(0);
    // `now` was read first, so the worker may have begun later.
    return std::chrono::nanoseconds(std::max<std::int64_t>(now - since, 0));
  }

  std::atomic<std::int64_t> running_since_{kForever};  // kForever: no task is running
  std::atomic<std::chrono::nanoseconds> last_lag_{std::chrono::nanoseconds(0)};
  std::atomic<std::chrono::nanoseconds> max_lag_{std::chrono::nanoseconds(0)};
  std::atomic<std::size_t> in_hand_{0};
  std::atomic<std::int64_t> task_errors_{0};
  std::atomic<std::int64_t> cancelled_without_producer_{0};
};

}  // namespace hwt::internal
