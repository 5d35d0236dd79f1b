// The multiplication in the place of a division is exact for all numbers: every remainder of small ticks, and the edges
// where a quotient changes for large ones.

#include "hashed_wheel_timer/detail/fast_divider.h"

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace hwt {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

std::uint64_t rounded_up(std::uint64_t n, std::uint64_t tick) { return n / tick + (n % tick != 0 ? 1 : 0); }

void expect_exact(std::uint64_t tick, std::uint64_t n) {
  ASSERT_EQ(detail::FastDivider(tick).divide_rounding_up(n), rounded_up(n, tick)) << n << " / " << tick;
}

/// Around the multiple of the tick next to n.
void expect_exact_around(std::uint64_t tick, std::uint64_t n) {
  const std::uint64_t multiple = n - n % tick;
  for (const std::uint64_t at : {multiple - 1, multiple, multiple + 1, multiple + (tick - 1), n})
    expect_exact(tick, at);
}

std::vector<std::uint64_t> ticks() {
  std::vector<std::uint64_t> ticks;
  for (std::uint64_t tick = 1; tick <= 300; ++tick) ticks.push_back(tick);
  for (unsigned bit = 1; bit < 64; ++bit) {
    const std::uint64_t power = std::uint64_t{1} << bit;
    for (const std::uint64_t tick : {power - 1, power, power + 1, power + power / 2}) ticks.push_back(tick);
  }
  for (std::uint64_t tick = 10; tick <= kMax / 10; tick *= 10) ticks.insert(ticks.end(), {tick - 1, tick, tick + 1});
  ticks.push_back(std::numeric_limits<std::int64_t>::max());
  ticks.push_back(kMax);
  return ticks;
}

TEST(FastDivider, IsExactForSmallNumbers) {
  for (std::uint64_t tick = 1; tick <= 300; ++tick)
    for (std::uint64_t n = 0; n <= 3000; ++n) expect_exact(tick, n);
}

TEST(FastDivider, IsExactAtTheEdges) {
  for (const std::uint64_t tick : ticks()) {
    for (unsigned bit = 0; bit < 64; ++bit) {
      const std::uint64_t power = std::uint64_t{1} << bit;
      for (const std::uint64_t n : {power - 1, power, power + 1}) expect_exact_around(tick, n);
    }
    expect_exact_around(tick, kMax);
    expect_exact(tick, kMax);
  }
}

TEST(FastDivider, IsExactForRandomNumbers) {
  std::mt19937_64 random(1);
  for (const std::uint64_t tick : ticks()) {
    for (int i = 0; i < 200; ++i) expect_exact_around(tick, random() >> random() % 64);
  }
  for (int i = 0; i < 100'000; ++i) expect_exact_around((random() >> random() % 64) | 1, random() >> random() % 64);
}

// The largest quotients that the multiplication has to tell apart: its error is largest there.
TEST(FastDivider, IsExactWhereItStopsBeingFast) {
  constexpr std::uint64_t kFast = std::uint64_t{1} << 63;
  for (const std::uint64_t tick : ticks())
    for (std::uint64_t below = 0; below < 100; ++below) {
      expect_exact_around(tick, kFast - below);
      expect_exact_around(tick, kFast + below);
      if (below * tick / tick == below && below * tick < kFast) expect_exact_around(tick, kFast - below * tick);
    }
}

static_assert(detail::FastDivider(1'000'000).divide_rounding_up(1'000'001) == 2);

}  // namespace
}  // namespace hwt
