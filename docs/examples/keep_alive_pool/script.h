#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace pool {

/// Times of a pool.
struct Times {
  std::chrono::nanoseconds heartbeat;
  std::chrono::nanoseconds expiry;
  std::chrono::nanoseconds tick;
  std::chrono::nanoseconds duration;
};

/// What each connection will do: which one goes silent, and after how many heartbeats.
class Script {
 public:
  Script(double silent, std::uint64_t seed, const Times& times)
      : silent_(silent), seed_(seed), heartbeats_(static_cast<std::uint64_t>(times.duration / times.heartbeat) + 1) {}

  static constexpr std::uint64_t kForEver = std::numeric_limits<std::uint64_t>::max();

  /// The number of heartbeats that a connection sends; any number of them within the duration, or kForEver.
  std::uint64_t heartbeats_of(std::uint64_t id) const noexcept {
    const std::uint64_t random = mixed(id ^ (seed_ << 32));
    if (static_cast<double>(random >> 11) * 0x1p-53 >= silent_) return kForEver;
    return mixed(random) % heartbeats_;
  }
  bool goes_silent(std::uint64_t id) const noexcept { return heartbeats_of(id) != kForEver; }

 private:
  // splitmix64: the same on every machine.
  static std::uint64_t mixed(std::uint64_t x) noexcept {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  double silent_;
  std::uint64_t seed_;
  std::uint64_t heartbeats_;
};

}  // namespace pool
