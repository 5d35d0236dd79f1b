#include "options.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>

#include "common/format.h"
#include "common/numbers.h"

namespace pool {
namespace {

struct Bounds {
  double min;
  double max;
  bool whole = false;
};

// Not CLI11's own conversions and checks: they round, let NaN pass, and do not always name value and range.
double number_in(const std::string& name, const std::string& text, const Bounds& bounds) {
  const std::optional<double> value = common::parse_number(text);
  if (value && *value >= bounds.min && *value <= bounds.max && (!bounds.whole || *value == std::floor(*value))) {
    return *value;
  }
  std::ostringstream expected;
  expected << (bounds.whole ? "a whole number " : "a number ") << bounds.min << " .. "
           << common::with_thousands(static_cast<std::int64_t>(bounds.max));
  throw CLI::ValidationError(name, "\"" + common::one_line(text, 40) + "\" (expected: " + expected.str() + ")");
}

}  // namespace

ParsedOptions parse_options(int argc, char** argv) {
  Options options;
  CLI::App app(
      "A pool of connections that send a heartbeat every 5 s and expire 30 s after the last one, on one\n"
      "hwt::KeyedTimer, used by several threads. First on simulated time, as fast as the machine can; then for\n"
      "some seconds on the real clock, with times twenty times as short. A share of the connections goes silent.\n\n"
      "Exit status: 0; 1 if a connection expired early or, on simulated time, late, or did not expire, and for an\n"
      "error while running; 2 for an argument that is not valid.\n",
      "keep_alive_pool");
  const auto number = [&app](const std::string& name, const std::string& help, const std::string& default_text,
                             const Bounds& bounds, const std::function<void(double)>& store) {
    app.add_option_function<std::string>(
           name, [=](const std::string& text) { store(number_in(name, text, bounds)); }, help)
        ->default_str(default_text)
        ->type_name("NUMBER");
  };
  number("--connections", "Connections in the pool", "1000000", {1, 10'000'000, true},
         [&](double value) { options.connections = static_cast<std::int64_t>(value); });
  number("--threads", "Threads that send heartbeats", "2", {1, 64, true},
         [&](double value) { options.threads = static_cast<int>(value); });
  number("--minutes", "Simulated time; Ctrl-C ends it earlier", "2", {0.1, 1440},
         [&](double value) { options.minutes = value; });
  number("--tick-ms", "Tick of the timer: a connection expires at most that much late", "100", {1, 10'000, true},
         [&](double value) { options.tick = std::chrono::milliseconds(static_cast<std::int64_t>(value)); });
  number("--silent", "Percentage of the connections that go silent", "1", {0, 100},
         [&](double value) { options.silent = value / 100; });
  number("--live-seconds", "How long to run on the real clock; 0: not at all", "4", {0, 3600},
         [&](double value) { options.live_seconds = value; });
  number("--seed", "Of who goes silent, and when", "1", {0, 9'007'199'254'740'992, true},
         [&](double value) { options.seed = static_cast<std::uint64_t>(value); });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return {std::nullopt, app.exit(error)};
    std::cerr << "keep_alive_pool: " << common::one_line(error.what()) << "; see --help\n";
    return {std::nullopt, 2};
  }
  return {options, 0};
}

}  // namespace pool
