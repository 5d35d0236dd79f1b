// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/time/request_clock.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "hashed_wheel_timer/internal/report/log.h"

namespace hwt::internal {

namespace {

constexpr double kUnit = 4294967296.0;  // 2^32
// NTP makes a clock run at most 500 millionths faster or slower. From the measurement to the use that can be twice as
// much.
constexpr double kMargin = 0.001;
// The rate is exact to one part in so many.
constexpr std::uint64_t kPrecision = 4096;
constexpr std::int64_t kLongEnough = 10'000'000;  // ns, to measure the rate
constexpr std::int64_t kGlance = 10'000;          // ns, to see whether the counter runs

/// Signed: it is negative if the counter has gone back.
double cycles_between(std::uint64_t from, std::uint64_t to) noexcept {
  return static_cast<double>(static_cast<std::int64_t>(to - from));
}

/// Takes four readings, and returns the one that took the shortest time. The first one of a process is slow, because
/// the code is in no cache.
ClockReading narrowest_of_four() noexcept {
  ClockReading best = ClockReading::take();
  for (int i = 1; i < 4; ++i) {
    const ClockReading next = ClockReading::take();
    if (next.after - next.before < best.after - best.before) best = next;
  }
  return best;
}

/// Returns whether the counter runs at less than half its rate at present. Judges by the two readings if they are close
/// together, and otherwise by `to` and a later one.
bool crawls(ClockReading from, ClockReading to, double rate) noexcept {
  if (to.time - from.time > 2 * CycleRate::kWindow) {
    from = to;
    do {
      to = ClockReading::take();
    } while (to.time - from.time < kGlance);
  }
  return cycles_between(from.before, to.after) * rate < static_cast<double>(to.time - from.time) / 2;
}

}  // namespace

ClockReading ClockReading::take() noexcept {
  ClockReading reading;
  reading.before = cycle_counter::read();
  reading.time = steady_now();
  reading.after = cycle_counter::read();
  return reading;
}

CycleRate::CycleRate(bool wanted) noexcept
    : begin_(wanted ? narrowest_of_four() : ClockReading{}), wanted_(wanted && cycle_counter::is_the_clock()) {}

void CycleRate::measure(const ClockReading& now) noexcept {
  if (get() != 0 || !wanted() || now.time - begin_.time < kLongEnough) return;
  const double cycles = cycles_between(begin_.after, now.before);
  const double unsure = cycles_between(begin_.before, begin_.after) + cycles_between(now.before, now.after);
  if (cycles > 0 && unsure * kPrecision > cycles) return;  // a thread was preempted in the midst of a reading
  // The cycles were counted between the two readings of the clock, so the rate is not too low.
  const double rate = static_cast<double>(now.time - begin_.time) / cycles * (1 + kMargin);
  // Only counters of 16 MHz to 16 GHz are accepted, 1/16 to 64 ns a cycle. tests/arithmetic proves the conversion for
  // these.
  if (cycles <= 0 || rate < 1.0 / 16 || rate > 64) return give_up(0);
  const auto fixed = static_cast<std::uint64_t>(rate * kUnit);
  std::uint64_t none = 0;
  if (!rate_.compare_exchange_strong(none, fixed, std::memory_order_relaxed)) return;
  measured_ = now;
  // Another thread may give up meanwhile. It stores wanted_, then 0 in window_. This thread stores window_, then reads
  // wanted_. All four are seq_cst: if this thread does not see that the other has given up, the 0 is stored last.
  window_.store(window_of(fixed), std::memory_order_seq_cst);
  if (!wanted_.load(std::memory_order_seq_cst)) window_.store(0, std::memory_order_relaxed);
}

void CycleRate::check(const ClockReading& from, const ClockReading& to) noexcept {
  const double rate = static_cast<double>(get()) / kUnit;
  if (rate == 0) return;
  const auto passed = static_cast<double>(to.time - from.time);
  const double most = cycles_between(from.before, to.after) * rate;
  // get() is raised by kMargin; here it is lowered by that.
  const double least = cycles_between(from.after, to.before) * rate * (1 - 2 * kMargin);
  // The counter has gone back beyond this anchor. A thread that sees this in now() renews its anchor at once.
  if (most < 0) return give_up(kWindow);
  // The counter was too slow, or it has gone back.
  if (passed > most + kSlack) {
    const auto lack = static_cast<std::int64_t>(passed - least);
    return give_up(lack < kWindow || crawls(from, to, rate) ? lack : kWindow);
  }
  // The counter was too fast, so deadlines are only too late.
  if (passed + kSlack < least) give_up(0);
}

void CycleRate::give_up(std::int64_t behind) noexcept {
  // See measure().
  wanted_.store(false, std::memory_order_seq_cst);
  window_.store(0, std::memory_order_seq_cst);
  std::int64_t before = this->behind();
  while (before < behind && !behind_.compare_exchange_weak(before, behind, std::memory_order_relaxed)) {
  }
}

std::int64_t RequestClock::renew(CycleRate& cycles) noexcept {
  if (!cycles.wanted()) return std::max(steady_now(), end_);
  const ClockReading now = ClockReading::take();
  if (end_ != 0) cycles.check(anchor_, now);
  cycles.measure(now);
  // Time stands still for this thread until the clock has reached end_.
  if (now.time < end_) return end_;
  if (cycles.window() == 0 || cycles.is_blurred(now)) return now.time;
  anchor_ = now;
  begin_ = now.time + CycleRate::kSlack;
  end_ = begin_ + CycleRate::kWindow;
  return begin_;
}

namespace {

[[gnu::cold, gnu::noinline]] void tell_that_clocks_disagree(std::int64_t behind) noexcept {
  std::array<char, 160> line;
  std::snprintf(line.data(), line.size(),
                "the cycle counter and steady_clock disagree; the timer reads steady_clock from now on, and runs all "
                "tasks %.3f ms later",
                static_cast<double>(behind) / 1e6);
  warn(line.data());
}

}  // namespace

std::int64_t WorkerClock::now() noexcept {
  if (latest_.after == 0 && !cycles_.wanted()) return steady_now() - cycles_.behind();
  ClockReading now = ClockReading::take();
  if (cycles_.is_blurred(now)) now = narrowest_of_four();
  if (cycles_.window() != 0 && latest_.time < cycles_.measured().time) latest_ = cycles_.measured();
  if (latest_.after != 0) cycles_.check(latest_, now);
  if (cycles_.wanted()) {
    if (latest_.time <= now.time - CycleRate::kWindow) latest_ = now;
    return now.time;
  }
  // From here on all threads see that the window is 0. The thread that gave up may not have stored that yet.
  cycles_.give_up();
  const ClockReading last = ClockReading::take();
  if (latest_.after != 0) cycles_.check(latest_, last);
  latest_ = ClockReading{};
  if (cycles_.get() != 0) tell_that_clocks_disagree(cycles_.behind());  // 0: its rate was refused at once
  return last.time - cycles_.behind();
}

}  // namespace hwt::internal
