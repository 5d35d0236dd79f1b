// Valid and invalid arguments of the family's constructors, and of functions with a duration. They are refused exactly
// as the headers say, with an error that names the argument.

#include "hashed_wheel_timer/options.h"

#include <cmath>
#include <new>
#include <stdexcept>

#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/hierarchical_wheel_timer.h"
#include "hashed_wheel_timer/jitter.h"
#include "hashed_wheel_timer/keyed_timer.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/passive_wheel.h"
#include "hashed_wheel_timer/repeated_timer.h"
#include "hashed_wheel_timer/schedule.h"
#include "tests/fuzz/targets.h"

namespace hwt::fuzz {

namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

/// Requires that f() throws std::invalid_argument with ": NAME: " and "(expected: " in its text, or nothing if the name
/// is empty.
template <class F>
void expect_refusal(const std::string& name, F f) {
  std::string said;
  try {
    f();
  } catch (const std::invalid_argument& error) {
    said = error.what();
  }
  const bool named = said.find(": " + name + ": ") != std::string::npos;
  if (name.empty() ? said.empty() : named && said.find("(expected: ") != std::string::npos) return;
  std::fprintf(stderr, "\"%s\" instead of an error about \"%s\"\n", said.c_str(), name.c_str());
  require(false, "refused exactly what is not valid");
}

nanoseconds any_time(Input& input) { return nanoseconds(any_number(input)); }

/// Also as floating seconds, NaN and the infinite ones among them.
Delay any_delay(Input& input) {
  if (input.one_in(2)) return any_time(input);
  if (input.one_in(4)) return std::chrono::duration<double>(std::nan(""));
  return std::chrono::duration<double>(input.number<double>());
}
bool is_positive(Delay delay) { return nanoseconds(delay) > nanoseconds(0); }
bool is_negative_or_nan(Delay delay) { return delay.is_nan() || nanoseconds(delay) < nanoseconds(0); }

/// Sizes and ticks that are valid or refused. Leaves out large wheels, which take long to make, and ticks that the
/// timer raises, because it prints a line for each.
void wheel_timer(Input& input) {
  const bool hashed = input.one_in(2);
  const std::int64_t fewest = hashed ? 1 : 2;
  const std::int64_t most = hashed ? std::int64_t{1} << 30 : 4096;
  const Options options{.tick_duration = any_time(input),
                        .ticks_per_wheel = any_number(input),
                        .max_pending_timeouts = any_number(input),
                        .slow_task = any_time(input)};
  const std::int64_t ticks = options.ticks_per_wheel;
  const std::int64_t tick = options.tick_duration.value().count();
  std::string refused;
  if (ticks < fewest || ticks > most) {
    refused = "ticks_per_wheel";
  } else {
    const nanoseconds shortest = hashed ? std::chrono::milliseconds(1) : std::chrono::microseconds(1);
    std::int64_t size = 1;
    while (size < ticks) size *= 2;
    if (size > 4096 || (tick > 0 && options.tick_duration < shortest)) return;
    if (tick <= 0 || (hashed && tick > nanoseconds::max().count() / size - 1)) {
      refused = "tick_duration";
    } else if (options.slow_task < nanoseconds(0)) {
      refused = "slow_task";
    }
  }
  expect_refusal(refused, [&] {
    hashed ? void(HashedWheelTimer(Options(options))) : void(HierarchicalWheelTimer(Options(options)));
  });
}

void tick_of_wheels(Input& input) {
  const nanoseconds tick = any_time(input);
  const steady_clock::time_point start(any_time(input));
  const std::string refused = tick > nanoseconds(0) ? "" : "tick_duration";
  if (input.one_in(2)) {
    expect_refusal(refused, [&] { ManualTimer timer(tick, start); });
  } else {
    expect_refusal(refused, [&] { PassiveWheel wheel(tick, start); });
  }
}

void schedule(Input& input) {
  const Delay first = any_delay(input);
  const Delay second = any_delay(input);
  const std::string initial = is_negative_or_nan(first) ? "initial" : "";
  switch (input.below(5)) {
    case 0:
      return expect_refusal(is_negative_or_nan(first) ? "delay" : "", [&] { Schedule::once(first); });
    case 1:
      return expect_refusal(!initial.empty() || is_positive(second) ? initial : "delay",
                            [&] { Schedule::fixed_delay(first, second); });
    case 2:
      return expect_refusal(!initial.empty() || is_positive(second) ? initial : "period",
                            [&] { Schedule::fixed_rate(first, second); });
    case 3: {
      const nanoseconds gaps[] = {any_time(input), any_time(input)};
      const std::size_t count = input.below(3);
      std::string refused = count == 0 ? "gaps" : "";
      for (std::size_t i = count; i-- > 0;) {
        if (gaps[i] <= nanoseconds(0)) refused = "gaps[" + std::to_string(i) + "]";
      }
      const std::vector<nanoseconds> list(gaps, gaps + count);
      return expect_refusal(refused, [&] { input.one_in(2) ? Schedule::sequence(list) : Schedule::cycle(list); });
    }
    default: {
      const auto limit = static_cast<std::uint64_t>(any_number(input));
      return expect_refusal(limit == 0 ? "limit" : "", [&] { (void)Schedule::once(nanoseconds(0)).limit(limit); });
    }
  }
}

void family(Input& input) {
  static ManualTimer timer;
  const Delay delay = any_delay(input);
  const std::string nan = delay.is_nan() ? "delay" : "";
  switch (input.below(5)) {
    case 0:
      return expect_refusal(nan, [&] { timer.new_timeout([] {}, delay).cancel(); });
    case 1: {
      ManualTimer other;
      return expect_refusal(nan, [&] { other.new_timeout([] {}, std::chrono::hours(1)).reschedule(delay); });
    }
    case 2:
      return expect_refusal(is_positive(delay) ? "" : "timeout",
                            [&] { RepeatedTimer("fuzz", delay, timer, {.on_trigger = [] {}}); });
    case 3:
      return expect_refusal(nan, [&] {
        KeyedTimer<int, int> keyed(timer, [](int, int) {});
        (void)keyed.set(1, 1, delay);
      });
    default: {
      ManualTimer other;
      return expect_refusal(is_negative_or_nan(delay) ? "by" : "", [&] { other.advance(delay); });
    }
  }
}

void random_durations(Input& input) {
  const nanoseconds a = any_time(input);
  const nanoseconds b = any_time(input);
  switch (input.below(3)) {
    case 0:
      return expect_refusal(a < b ? "" : "lo", [&] {
        const nanoseconds found = jitter::between(a, b);
        require(found >= a && found < b, "between lo and hi");
      });
    case 1: {
      const double fraction = input.one_in(2) ? input.number<double>() : static_cast<double>(input.below(101)) / 100;
      const bool in_range = fraction >= 0 && fraction <= 1;
      return expect_refusal(
          a < nanoseconds(0) ? "mean"
          : in_range         ? ""
                             : "fraction",
          [&] {
            const nanoseconds found = jitter::around(a, fraction);
            const long double spread = static_cast<long double>(a.count()) * fraction + 1;
            require(std::fabs(static_cast<long double>(found.count()) - static_cast<long double>(a.count())) <= spread,
                    "around the mean");
          });
    }
    default:
      return expect_refusal(a > nanoseconds(0) ? "" : "full", [&] {
        const nanoseconds found = jitter::first_half(a);
        require(found >= a / 2 && found < a, "from the half on, and before the whole");
      });
  }
}

}  // namespace

void options(Input& input) {
  static constexpr void (*kChecks[])(Input&) = {wheel_timer, tick_of_wheels, schedule, family, random_durations};
  do {
    input.one_of(kChecks)(input);
  } while (!input.ended());
}

}  // namespace hwt::fuzz
