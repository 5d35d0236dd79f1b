#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace rpc {

struct Options {
  int in_flight = 2000;
  int connections = 16;
  std::chrono::milliseconds timeout{250};
  std::chrono::milliseconds tick{10};
  double seconds = 10;
  double never_answer = 0.01;  // share of the requests
  double latency_median_ms = 20;
  double latency_sigma = 0.8;
  std::uint64_t seed = 1;
  std::string latencies_file;  // empty: log-normal latencies
  std::string svg_file = "rpc_timeouts.svg";
  bool quiet = false;
};

struct ParsedOptions {
  std::optional<Options> options;  // nothing: end with exit_status, all has been said
  int exit_status = 0;
};

ParsedOptions parse_options(int argc, char** argv);

}  // namespace rpc
