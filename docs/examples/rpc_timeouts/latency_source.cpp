#include "latency_source.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <system_error>
#include <utility>

#include "common/format.h"
#include "common/numbers.h"

namespace rpc {
namespace {

constexpr std::size_t kMaxLatencies = 10'000'000;
constexpr double kMaxMicroseconds = 3600e6;
constexpr std::chrono::hours kMaxLatency(1);

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw BadLatencies("--latencies " + common::one_line(path) + ": " + why);
}

std::string reason_of(int error) { return std::generic_category().message(error); }

}  // namespace

std::vector<std::chrono::nanoseconds> read_latencies(const std::string& path) {
  errno = 0;
  std::ifstream in(path);
  if (!in) refuse(path, "cannot open: " + reason_of(errno));

  std::vector<std::chrono::nanoseconds> latencies;
  // A buffer of fixed size: a file that is no text at all must not be read into memory as one line.
  char buffer[256];
  for (std::size_t line = 1; in.getline(buffer, sizeof buffer) || in.gcount() > 0; ++line) {
    const auto length = static_cast<std::size_t>(in.gcount()) - (in.good() ? 1 : 0);  // without the newline
    const std::string_view text = common::trimmed({buffer, length});
    if (text.empty() && in) continue;
    const std::optional<double> microseconds = in || in.eof() ? common::parse_number(text) : std::nullopt;
    if (!microseconds || *microseconds < 0 || *microseconds > kMaxMicroseconds) {
      refuse(path, "line " + std::to_string(line) + ": \"" + common::one_line(text, 40) +
                       "\" (expected: microseconds, a number 0 .. 3600000000)");
    }
    if (latencies.size() == kMaxLatencies)
      refuse(path, "more than " + common::with_thousands(kMaxLatencies) + " latencies");
    latencies.emplace_back(std::llround(*microseconds * 1e3));
  }
  if (in.bad()) refuse(path, "cannot read: " + reason_of(errno));
  if (latencies.empty()) refuse(path, "no latencies in it (expected: microseconds, one number a line)");
  return latencies;
}

LatencySource::LatencySource(double never_answer_share, std::uint64_t seed, std::chrono::nanoseconds median,
                             double sigma)
    : random_(seed), never_(never_answer_share), nanoseconds_(std::log(static_cast<double>(median.count())), sigma) {}

LatencySource::LatencySource(double never_answer_share, std::uint64_t seed,
                             std::vector<std::chrono::nanoseconds> latencies)
    : random_(seed), never_(never_answer_share), replayed_(std::move(latencies)) {}

std::optional<std::chrono::nanoseconds> LatencySource::next() {
  if (never_(random_)) return std::nullopt;
  if (replayed_.empty()) {
    constexpr double most = std::chrono::duration<double, std::nano>(kMaxLatency).count();
    return std::chrono::nanoseconds(std::llround(std::min(most, nanoseconds_(random_))));
  }
  const std::chrono::nanoseconds latency = replayed_[next_replayed_];
  next_replayed_ = (next_replayed_ + 1) % replayed_.size();
  return latency;
}

}  // namespace rpc
