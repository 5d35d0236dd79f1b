#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

namespace hwt::test {

/// Returns ticks of a timer's life at which a number in it carries. Some are the first ticks of the levels of a wheel
/// that has `1 << digit_bits` slots a level. At others a count of ticks, nanoseconds, microseconds, milliseconds or
/// seconds exceeds 31, 32 or 62 bits. The first in the result is `last`, the end of the clock. No tick is later.
inline std::vector<std::int64_t> carries(int digit_bits, std::int64_t last, std::chrono::nanoseconds tick) {
  std::vector<std::int64_t> ticks{last};
  for (int bits = digit_bits; bits < 63; bits += digit_bits) ticks.push_back(std::int64_t{1} << bits);
  for (const std::int64_t unit : {std::int64_t{tick.count()}, std::int64_t{1}, std::int64_t{1'000},
                                  std::int64_t{1'000'000}, std::int64_t{1'000'000'000}}) {
    for (const int bits : {31, 32, 62}) {
      if (unit <= std::numeric_limits<std::int64_t>::max() >> bits) ticks.push_back((unit << bits) / tick.count());
    }
  }
  std::erase_if(ticks, [=](std::int64_t carry) { return carry > last; });
  return ticks;
}

}  // namespace hwt::test
