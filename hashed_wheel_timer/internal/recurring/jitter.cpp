// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/jitter.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "hashed_wheel_timer/internal/platform/threads.h"
#include "hashed_wheel_timer/internal/report/refuse.h"

namespace hwt::jitter {

using internal::refuse;
using std::chrono::nanoseconds;

namespace {

/// A small one, because each thread has its own. If a running program loads the library, glibc has 1.6 KiB for all
/// thread_locals of the library together, and std::mt19937_64 alone takes 2.5 KiB.
using Engine = std::ranlux48_base;

Engine seeded() {
  std::random_device source;
  std::seed_seq seeds{source(), source(), source(), source()};
  return Engine(seeds);
}

/// Returns a number from `first` to `last`. Both are included, because no excluded end could lie after the largest
/// int64.
nanoseconds uniform(std::int64_t first, std::int64_t last) {
  thread_local Engine engine = seeded();
  thread_local std::int64_t process = internal::this_process();
  // A forked child would draw the same numbers as its parent and its siblings.
  if (process != internal::this_process()) {
    engine = seeded();
    process = internal::this_process();
  }
  return nanoseconds(std::uniform_int_distribution<std::int64_t>(first, last)(engine));
}

/// Returns the shortest text that no other number has.
std::string text_of(double number) {
  std::array<char, 32> text{};
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text.data(), text.size(), "%.*g", digits, number);
    if (std::strtod(text.data(), nullptr) == number) break;
  }
  return text.data();
}

}  // namespace

nanoseconds between(nanoseconds lo, nanoseconds hi) {
  if (lo >= hi) refuse("jitter::between: lo", lo, "less than hi, " + internal::text_of(hi));
  return uniform(lo.count(), hi.count() - 1);
}

nanoseconds around(nanoseconds mean, double fraction) {
  if (mean < nanoseconds::zero()) refuse("jitter::around: mean", mean, "0 ns or more");
  if (!(fraction >= 0 && fraction <= 1)) refuse("jitter::around: fraction", text_of(fraction), "0 .. 1");
  const std::int64_t middle = mean.count();
  // A product that rounds up to 2^63 does not fit; for a fraction of one no product is needed.
  const std::int64_t spread =
      fraction < 1 ? std::min(middle, static_cast<std::int64_t>(static_cast<long double>(middle) * fraction)) : middle;
  const std::int64_t room = (nanoseconds::max)().count() - middle;
  return uniform(middle - spread, middle + std::min(spread, room));
}

nanoseconds first_half(nanoseconds full) {
  if (full <= nanoseconds::zero()) refuse("jitter::first_half: full", full, "1 ns or more");
  return between(full / 2, full);
}

}  // namespace hwt::jitter
