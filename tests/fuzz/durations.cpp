// Durations against numbers of 128 bits, in which nothing overflows. tests/arithmetic has proofs about times and grids.

#include <cmath>

#include "hashed_wheel_timer/delay.h"
#include "tests/fuzz/targets.h"

namespace hwt::fuzz {

namespace {

using std::chrono::nanoseconds;

__extension__ typedef __int128 Wide;  // `using` cannot carry __extension__, which keeps -Wpedantic quiet
__extension__ typedef unsigned __int128 Widest;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

nanoseconds clipped(Wide count) {
  return nanoseconds(count > kMax ? kMax : count < -Wide{kMax} ? -kMax : static_cast<std::int64_t>(count));
}

/// Rounded away from zero. For a count of up to 64 bits.
template <class Period>
nanoseconds expected_of(Wide count) {
  using PerPeriod = std::ratio_divide<Period, std::nano>;
  const bool negative = count < 0;
  const Widest product = static_cast<Widest>(negative ? -count : count) * static_cast<Widest>(PerPeriod::num);
  const Widest rounded = product / PerPeriod::den + (product % PerPeriod::den != 0 ? 1 : 0);
  const Wide limited = static_cast<Wide>(std::min(rounded, Widest{1} << 100));
  return clipped(negative ? -limited : limited);
}

template <class Rep, class Period>
void check_integer(Input& input) {
  const auto count = static_cast<Rep>(any_number(input));
  const Delay delay = std::chrono::duration<Rep, Period>(count);
  require(!delay.is_nan(), "an integer is a number");
  require_equal(nanoseconds(delay).count(), expected_of<Period>(count).count(), "an integer is converted exactly");
}

/// Exact where the product fits into the floating number; else never farther off than that rounds.
template <class Rep, class Period>
void check_floating(Input& input) {
  const Rep count = input.one_in(2) ? static_cast<Rep>(any_number(input)) / static_cast<Rep>(1 + input.below(7))
                                    : static_cast<Rep>(input.number<double>());
  const Delay delay = std::chrono::duration<Rep, Period>(count);
  require(delay.is_nan() == std::isnan(count), "NaN is told from numbers");
  if (std::isnan(count)) return;
  const std::int64_t ns = nanoseconds(delay).count();
  using PerPeriod = std::ratio_divide<Period, std::nano>;
  const long double exact = static_cast<long double>(count) * static_cast<long double>(PerPeriod::num) /
                            static_cast<long double>(PerPeriod::den);
  require((count > 0) == (ns > 0) && (count < 0) == (ns < 0), "the sign stays");
  if (std::fabs(exact) >= 9.2233720368547e18L) {  // near the limit, where the library takes it for beyond
    require(ns >= 9'223'372'036'854'700'000 || ns <= -9'223'372'036'854'700'000, "what is beyond saturates");
    return;
  }
  const long double off = std::fabs(static_cast<long double>(ns)) - std::fabs(exact);
  const long double rounding = std::fabs(exact) * 4 * std::numeric_limits<long double>::epsilon();
  require(off >= -rounding, "a fraction is rounded away from zero");
  require(off <= 1 + rounding, "by less than a nanosecond");
}

}  // namespace

void durations(Input& input) {
  using std::ratio;
  using Odd = ratio<1001, 30000>;
  using Long = ratio<kMax / 1'000'000'000 - 1, 7>;
  static constexpr void (*kChecks[])(Input&) = {
      check_integer<std::int64_t, std::nano>,     check_integer<std::int64_t, std::pico>,
      check_integer<std::int64_t, std::milli>,    check_integer<std::int64_t, ratio<1>>,
      check_integer<std::int64_t, ratio<604800>>, check_integer<std::int64_t, Odd>,
      check_integer<std::int64_t, Long>,          check_integer<std::int64_t, ratio<1, kMax>>,
      check_integer<std::uint64_t, std::nano>,    check_integer<std::uint64_t, std::atto>,
      check_integer<std::uint64_t, Odd>,          check_integer<std::uint64_t, ratio<3600>>,
      check_integer<std::int32_t, std::micro>,    check_integer<std::uint32_t, ratio<86400>>,
      check_integer<std::int16_t, ratio<2, 3>>,   check_integer<std::int8_t, Long>,
      check_integer<std::uint8_t, ratio<1, 3>>,   check_floating<double, std::nano>,
      check_floating<double, ratio<1>>,           check_floating<double, Odd>,
      check_floating<double, std::pico>,          check_floating<float, std::milli>,
      check_floating<long double, ratio<1>>,      check_floating<double, ratio<31556952>>,
  };
  do {
    input.one_of(kChecks)(input);
  } while (!input.ended());
}

}  // namespace hwt::fuzz
