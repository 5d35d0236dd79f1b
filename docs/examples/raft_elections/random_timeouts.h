#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <random>

namespace raft {

/// Random timeouts that differ between nodes, so that they do not become candidates together. Any thread.
class RandomTimeouts {
 public:
  explicit RandomTimeouts(std::uint64_t seed) : random_(seed) {}

  /// Uniform in [low, high).
  std::chrono::nanoseconds between(std::chrono::nanoseconds low, std::chrono::nanoseconds high) {
    std::uniform_int_distribution<std::chrono::nanoseconds::rep> uniform(low.count(), high.count() - 1);
    const std::lock_guard lock(mutex_);
    return std::chrono::nanoseconds(uniform(random_));
  }

 private:
  std::mutex mutex_;
  std::mt19937_64 random_;
};

}  // namespace raft
