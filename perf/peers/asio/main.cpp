// The workloads on the timers of Asio.

#include <asio/version.hpp>
#include <string>

#include "asio_timers.h"
#include "harness/measure.h"
#include "harness/run.h"

int main(int argc, char** argv) {
  const std::string version = std::to_string(ASIO_VERSION / 100'000) + "." +
                              std::to_string(ASIO_VERSION / 100 % 1'000) + "." + std::to_string(ASIO_VERSION % 100);
  return perf::run({.name = "asio", .version = version, .one_loop = true, .measure = &perf::measure<perf::AsioTimers>},
                   argc, argv);
}
