#pragma once

// Shared by the fuzz programs: an input read as choices, and the message when a promise is broken. Includes what most
// need of the standard library.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace hwt::fuzz {

/// The bytes of an input, as choices. When they have been used up, each choice is the first one: so every input is a
/// valid one, and any part of it may be cut off.
class Input {
 public:
  /// `patient`: the run may take long, so targets make slow calls too. The fuzzers are not patient.
  Input(const std::uint8_t* bytes, std::size_t size, bool patient = false)
      : next_(bytes), end_(bytes + size), patient_(patient) {}

  bool ended() const { return next_ == end_; }
  bool patient() const { return patient_; }

  /// Takes the bytes of a Number, in the order of this machine; zeros once the input has ended.
  template <class Number>
  Number number() {
    Number value{};
    std::uint8_t bytes[sizeof(Number)] = {};
    for (std::uint8_t& byte : bytes) byte = ended() ? 0 : *next_++;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }

  /// In [0, limit), from a byte if that is enough.
  std::uint64_t below(std::uint64_t limit) {
    if (limit <= 256) return number<std::uint8_t>() % limit;
    if (limit <= 65536) return number<std::uint16_t>() % limit;
    return number<std::uint64_t>() % limit;
  }
  std::int64_t up_to(std::int64_t last) {
    return static_cast<std::int64_t>(below(static_cast<std::uint64_t>(last) + 1));
  }
  bool one_in(std::uint64_t n) { return below(n) == n - 1; }

  /// One of these.
  template <class T, std::size_t kSize>
  T one_of(const T (&values)[kSize]) {
    return values[below(kSize)];
  }

 private:
  const std::uint8_t* next_;
  const std::uint8_t* end_;
  const bool patient_;
};

/// Returns any number, often one near to zero, to a power of two, or to an end of the range.
inline std::int64_t any_number(Input& input) {
  using Limits = std::numeric_limits<std::int64_t>;
  switch (input.below(4)) {
    case 0:
      return input.number<std::int8_t>();
    case 1: {
      const std::int64_t power = std::int64_t{1} << input.below(63);
      const std::int64_t edge = power - 3 + input.up_to(5);
      return input.one_in(2) ? -edge : edge;
    }
    case 2:
      return input.one_in(2) ? Limits::max() - input.up_to(255) : Limits::min() + input.up_to(255);
    default:
      return input.number<std::int64_t>();
  }
}

/// Returns the bytes of a patient input: random ones, which the seed decides.
inline std::vector<std::uint8_t> random_bytes(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> bytes(1'000 + random() % 20'000);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

/// Ends the program unless the promise is kept. The sanitizer's report, or a debugger, shows the callers.
inline void require(bool kept, const char* promise) {
  if (kept) [[likely]]
    return;
  std::fprintf(stderr, "broken: %s\n", promise);
  std::abort();
}

/// Requires that f() throws an Error.
template <class Error, class F>
void require_throws(F f, const char* promise) {
  try {
    f();
  } catch (const Error&) {
    return;
  }
  require(false, promise);
}

/// As require(), when values tell more.
inline void require_equal(std::int64_t seen, std::int64_t expected, const char* promise) {
  if (seen == expected) [[likely]]
    return;
  std::fprintf(stderr, "%lld instead of %lld: ", static_cast<long long>(seen), static_cast<long long>(expected));
  require(false, promise);
}

// Times as unsigned numbers, because the distance of two points of a clock may exceed a signed number.

using TimePoint = std::chrono::steady_clock::time_point;

inline std::uint64_t distance(TimePoint from, TimePoint to) {
  const auto count = [](TimePoint time) { return static_cast<std::uint64_t>(time.time_since_epoch().count()); };
  return count(to) - count(from);
}

/// from + ahead, or the end of time.
inline TimePoint later_by(TimePoint from, std::uint64_t ahead) {
  if (ahead >= distance(from, TimePoint::max())) return TimePoint::max();
  const std::uint64_t sum = static_cast<std::uint64_t>(from.time_since_epoch().count()) + ahead;
  return TimePoint(std::chrono::nanoseconds(static_cast<std::int64_t>(sum)));
}

/// The point of the clock at which a delay from `now` ends; a negative one counts as zero, and the longest never ends.
inline TimePoint after(TimePoint now, std::chrono::nanoseconds delay) {
  if (delay == std::chrono::nanoseconds::max()) return TimePoint::max();
  return delay.count() <= 0 ? now : later_by(now, static_cast<std::uint64_t>(delay.count()));
}

}  // namespace hwt::fuzz
