// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "hashed_wheel_timer/internal/time/clock.h"
#include "hashed_wheel_timer/internal/time/cycle_counter.h"

namespace hwt::internal {

/// The cycle counter and steady_clock, read together: the clock was read between the two readings of the counter.
struct ClockReading {
  std::uint64_t before;
  std::int64_t time;  // ns
  std::uint64_t after;

  static ClockReading take() noexcept;
};

/// The length of a cycle of the processor's counter, for all threads of one timer. Each thread compares the counter
/// with steady_clock about once in a millisecond (RequestClock). The worker compares them each time before it runs
/// anything. After the first comparison that fails, no thread uses the counter again.
///
///   state     wanted()  get()   window()
///   measuring true      0       0         for 10 ms or more; threads read steady_clock
///   in use    true      rate    cycles    threads estimate the time from their latest reading of both (the anchor)
///   given up  false     any     0         for good; threads read steady_clock
///
/// A comparison fails if the two differ by more than kSlack plus a thousandth of the time since the comparison before.
///
/// A counter that is slow has made deadlines too early until then. To make up for that, the worker's time stays behind
/// steady_clock from then on: see behind(). An estimate counts from an anchor and ends before a window of cycles has
/// passed. So the estimate is too early by less than kWindow in two cases:
///   - The counter runs at half its rate or faster. Then its window ends within two windows of the clock. The clock may
///     have been slewed by up to 1,000,000 millionths, for any time.
///   - The counter goes back. A thread that finds it before its anchor compares at once.
///
/// If the counter crawls (runs at less than half its rate) or stands still, no window bounds the error. Then only the
/// clock shows that time passes, and the worker compares the two before it runs anything. The error is at most the lack
/// of the counter since the comparison before. If the counter crawls at the comparison, behind() is this lack.
/// Otherwise behind() is the lack, but at most kWindow.
///
/// So a deadline can remain too early by a thousandth of a sleep, and if the counter recovers before a comparison:
///   - It stood still or crawled for more than kWindow, and a thread estimated meanwhile or in the millisecond after.
///   - It went back, and reached the window of the anchor of a thread that had been idle since before that. This thread
///     must be the first of the timer that reads the counter again, and in this millisecond.
///
/// The kernel derives steady_clock from the counter: see cycle_counter::is_the_clock(). So a counter that stands still
/// takes the clock along, unless the kernel has changed its clock source meanwhile.
/// Any thread may call any member. The atomic members are relaxed, because they order nothing, except for window_, and
/// for the race of measure() with give_up().
class CycleRate {
 public:
  /// If `wanted` or cycle_counter::is_the_clock() is false, all threads read steady_clock.
  explicit CycleRate(bool wanted) noexcept;

  /// Returns whether the counter is in use, or will be after some milliseconds.
  bool wanted() const noexcept { return wanted_.load(std::memory_order_relaxed); }
  /// Returns nanoseconds per cycle, times 2^32 and raised by a thousandth. Returns 0 while it is not known.
  std::uint64_t get() const noexcept { return rate_.load(std::memory_order_relaxed); }
  /// Returns for how many cycles a thread may rely on one comparison. Returns 0 if no thread may use the counter.
  std::uint64_t window() const noexcept { return window_.load(std::memory_order_acquire); }
  /// Returns the reading that has set the rate. Precondition: window() was not 0.
  const ClockReading& measured() const noexcept { return measured_; }
  /// Sets get() and window(), if enough time has passed since the constructor.
  void measure(const ClockReading& now) noexcept;
  /// Returns whether a thread that took this reading was preempted in its midst. Such a reading hides a lack of the
  /// counter, and estimates from it would be ahead of the clock.
  bool is_blurred(const ClockReading& reading) const noexcept {
    return reading.after - reading.before >= window() / 1024 && window() != 0;
  }
  /// Compares the counter with the clock between two readings of one thread.
  void check(const ClockReading& from, const ClockReading& to) noexcept;
  /// Notes that no thread may use the counter any more.
  void give_up() noexcept { give_up(0); }
  /// Returns by how many nanoseconds the worker's time stays behind steady_clock, because an estimate can have been too
  /// early by that. At most kWindow, unless the counter crawled when a comparison failed.
  std::int64_t behind() const noexcept { return behind_.load(std::memory_order_relaxed); }

  /// The window in nanoseconds. An estimate is ahead of the clock by at most some thousandths of the window, plus
  /// kSlack.
  static constexpr std::int64_t kWindow = std::int64_t{1} << 20;
  /// Added to each estimate, in nanoseconds. The processor may read the counter early, but by less than this.
  static constexpr std::int64_t kSlack = 1000;

  /// Returns the nanoseconds of so many cycles at that rate: see get(). A `Word` has 64 bits; tests/arithmetic has a
  /// symbolic one. Precondition: cycles < window_of(rate).
  template <class Word>
  static constexpr Word nanoseconds_of(Word cycles, Word rate) noexcept {
    return (cycles * rate) >> 32;
  }
  /// Returns the window in cycles at that rate.
  template <class Word>
  static constexpr Word window_of(Word rate) noexcept {
    return Word{static_cast<std::uint64_t>(kWindow) << 32} / rate;
  }

 private:
  void give_up(std::int64_t behind) noexcept;

  const ClockReading begin_;
  std::atomic<bool> wanted_;
  std::atomic<std::uint64_t> rate_{0};
  std::atomic<std::uint64_t> window_{0};  // release and acquire: a thread that reads it also reads rate_ and measured_
  ClockReading measured_{};               // written once, by the thread that has set rate_, before window_
  std::atomic<std::int64_t> behind_{0};
};

/// The clock by which one thread turns delays into deadlines. Reading the clock is the most expensive part of a
/// request, and the cycle counter takes less than half the time of steady_clock. Only its owner uses it.
class RequestClock {
 public:
  /// While the counter is right, returns a time that is not before the present time, and at most some microseconds
  /// after it. When the timer gives up the counter, the time may stand still for up to kWindow. It never goes back
  /// unless the counter does.
  std::int64_t now(CycleRate& cycles) noexcept {
    const std::uint64_t passed = cycle_counter::read() - anchor_.before;
    // Reads the shared window each time. CycleRate sets it to 0 to end the use of the counter; a counter that stands
    // still would never reach the end of a window that this object keeps.
    if (passed >= cycles.window()) [[unlikely]]
      return renew(cycles);
    return begin_ + static_cast<std::int64_t>(CycleRate::nanoseconds_of(passed, cycles.get()));
  }

 private:
  std::int64_t renew(CycleRate& cycles) noexcept;

  // The reading from which the estimates count. A new clock has none: half the counter's range is between this and
  // zero, so that the first now() calls renew() even just after a reset of the counter.
  ClockReading anchor_{std::uint64_t{1} << 63, 0, 0};
  std::int64_t begin_ = 0;  // the estimate at anchor_.before
  std::int64_t end_ = 0;    // the latest estimate that now() may have returned; 0 if there is no anchor
};

/// The time by which the worker decides which timeouts are due, unless a ManualTimer's caller gives it. Only the thread
/// that turns the wheel uses it.
class WorkerClock {
 public:
  /// Takes a reading, with which now() compares until the rate is known. From then on now() compares with no reading
  /// before the one that has set the rate. If the system was suspended before that, only later time shows that the rate
  /// is wrong.
  explicit WorkerClock(CycleRate& cycles) noexcept
      : cycles_(cycles), latest_(cycles.wanted() ? ClockReading::take() : ClockReading{}) {}

  /// Returns the present time, less CycleRate::behind(). When the counter proves wrong, that time goes back once, and
  /// this writes one line on stderr. Compares the counter with the clock first, over a window at least if calls come
  /// more often: each comparison allows an error, and those of many would add up. So behind() covers the estimates
  /// since the comparison before, unless the comparison allows their error. The last comparison is made after the use
  /// of the counter has ended, also if another thread has ended it, because that thread may have had a younger anchor.
  std::int64_t now() noexcept;
  /// Returns the time of steady_clock at which now() will return `time`. lateness() and last_lag count by it, so they
  /// include CycleRate::behind().
  std::int64_t steady(std::int64_t time) const noexcept { return deadline_after(time, cycles_.behind()); }

 private:
  CycleRate& cycles_;
  // The reading with which now() compares, while the counter is in use, or wanted. None after the last comparison.
  ClockReading latest_;
};

}  // namespace hwt::internal
