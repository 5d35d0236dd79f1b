#pragma once

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <random>

#include "common/common.h"

namespace rpc {

/// Decides how long the server takes for each request. The same arguments give the same sequence.
class Latencies {
 public:
  /// Log-normal, or, if there are any, those in `replayed` again and again in their order.
  Latencies(double never_answer_share, std::uint64_t seed, double median_ms, double sigma,
            std::vector<std::chrono::nanoseconds> replayed)
      : random_(seed),
        never_(never_answer_share),
        nanoseconds_(std::log(median_ms * 1e6), sigma),
        replayed_(std::move(replayed)) {}

  /// Nothing: the request is never answered.
  std::optional<std::chrono::nanoseconds> next() {
    if (never_(random_)) return std::nullopt;
    if (replayed_.empty()) {
      return std::chrono::nanoseconds(std::llround(std::min(kMaxMicroseconds * 1e3, nanoseconds_(random_))));
    }
    return replayed_[next_replayed_++ % replayed_.size()];
  }

  /// Microseconds, one number a line. Throws BadArgument, naming the file and what is wrong in it.
  static std::vector<std::chrono::nanoseconds> read(const std::string& path) {
    const auto refuse = [&path](const std::string& why) {
      throw common::BadArgument("--latencies " + common::one_line(path) + ": " + why);
    };
    errno = 0;
    std::ifstream in(path);
    if (!in) refuse(std::string("cannot open: ") + std::strerror(errno));
    std::vector<std::chrono::nanoseconds> latencies;
    // So many characters at most: a file that is no text at all must not be read into memory as one word.
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
