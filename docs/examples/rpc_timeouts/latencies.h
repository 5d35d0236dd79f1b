#pragma once

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <random>

#include "common/common.h"

namespace rpc {

/// Decides how long the server takes for each request. Equal arguments give equal sequences.
class Latencies {
 public:
  /// Replays `replayed` in a cycle. If it is empty, latencies are log-normal.
  Latencies(double never_answer_share, std::uint64_t seed, double median_ms, double sigma,
            std::vector<std::chrono::nanoseconds> replayed)
      : random_(seed),
        never_(never_answer_share),
        nanoseconds_(std::log(median_ms * 1e6), sigma),
        replayed_(std::move(replayed)) {}

  /// Returns nothing for a request that is never answered.
  std::optional<std::chrono::nanoseconds> next() {
    if (never_(random_)) return std::nullopt;
    if (replayed_.empty()) {
      return std::chrono::nanoseconds(std::llround(std::min(kMaxMicroseconds * 1e3, nanoseconds_(random_))));
    }
    return replayed_[next_replayed_++ % replayed_.size()];
  }

  /// Reads microseconds, one number a line. Throws BadArgument with the file and the error.
  static std::vector<std::chrono::nanoseconds> read(const std::string& path) {
    const auto refuse = [&path](const std::string& why) {
      throw common::BadArgument("--latencies " + common::one_line(path) + ": " + why);
    };
    errno = 0;
    std::ifstream in(path);
    if (!in) refuse(std::string("cannot open: ") + std::strerror(errno));
    std::vector<std::chrono::nanoseconds> latencies;
    // The limit keeps a binary file from being read as one long word.
    for (std::string word; in >> std::setw(50) >> word;) {
      const std::optional<double> microseconds = common::parse_number(word);
      if (!microseconds || *microseconds < 0 || *microseconds > kMaxMicroseconds) {
        refuse("latency " + common::text_of(latencies.size() + 1) + ": \"" + common::one_line(word) +
               "\" (expected: microseconds, a number 0 .. 3,600,000,000)");
      }
      if (latencies.size() == kMostLatencies) refuse("more than " + common::text_of(kMostLatencies) + " latencies");
      latencies.emplace_back(std::llround(*microseconds * 1e3));
    }
    if (in.bad()) refuse(std::string("cannot read: ") + std::strerror(errno));
    if (latencies.empty()) refuse("no latencies in it (expected: microseconds, one number a line)");
    return latencies;
  }

 private:
  static constexpr std::size_t kMostLatencies = 10'000'000;
  static constexpr double kMaxMicroseconds = 3600e6;

  std::mt19937_64 random_;
  std::bernoulli_distribution never_;
  std::lognormal_distribution<double> nanoseconds_;
  std::vector<std::chrono::nanoseconds> replayed_;
  std::size_t next_replayed_ = 0;
};

}  // namespace rpc
