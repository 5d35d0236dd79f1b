#pragma once

#include <random>

#include "common/common.h"

namespace store {

/// Decides the work of the server for each call. Equal arguments give equal sequences. Any thread may call it.
class Work {
 public:
  struct Settings {
    double median_ms = 10;
    double slow = 0.03;     // share of the calls that take kSlower times as long
    double refused = 0.01;  // share of the calls that are refused
    std::uint64_t seed = 1;
  };

  explicit Work(const Settings& settings)
      : random_(settings.seed),
        refused_(settings.refused),
        slow_(settings.slow),
        nanoseconds_(std::log(settings.median_ms * 1e6), kSigma) {}

  /// Returns the duration of a call, or nothing if it is refused.
  std::optional<std::chrono::nanoseconds> next() {
    const std::lock_guard lock(mutex_);
    if (refused_(random_)) return std::nullopt;
    const double factor = slow_(random_) ? kSlower : 1;
    return std::chrono::nanoseconds(std::llround(std::min(kLongest, factor * nanoseconds_(random_))));
  }

 private:
  static constexpr double kSigma = 0.4;  // of the logarithm
  static constexpr double kSlower = 10;
  static constexpr double kLongest = 3600e9;

  std::mutex mutex_;
  // Guarded by mutex_.
  std::mt19937_64 random_;
  std::bernoulli_distribution refused_;
  std::bernoulli_distribution slow_;
  std::lognormal_distribution<double> nanoseconds_;
};

}  // namespace store
