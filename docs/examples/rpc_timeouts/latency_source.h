#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace rpc {

/// A file that cannot be read or that holds something else than latencies.
class BadLatencies : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One latency in microseconds a line; blank lines are skipped. Throws BadLatencies, naming file, line and text.
std::vector<std::chrono::nanoseconds> read_latencies(const std::string& path);

/// Decides how long the server takes for each request. The same arguments give the same sequence.
class LatencySource {
 public:
  /// Log-normal.
  LatencySource(double never_answer_share, std::uint64_t seed, std::chrono::nanoseconds median, double sigma);
  /// Repeats the given latencies, in their order. Precondition: not empty.
  LatencySource(double never_answer_share, std::uint64_t seed, std::vector<std::chrono::nanoseconds> latencies);

  /// Nothing: the request is never answered.
  std::optional<std::chrono::nanoseconds> next();

 private:
  std::mt19937_64 random_;
  std::bernoulli_distribution never_;
  std::lognormal_distribution<double> nanoseconds_;
  std::vector<std::chrono::nanoseconds> replayed_;
  std::size_t next_replayed_ = 0;
};

}  // namespace rpc
