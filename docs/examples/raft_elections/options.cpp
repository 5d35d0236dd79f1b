#include "options.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <string>
#include <type_traits>

#include "common/format.h"
#include "common/numbers.h"

namespace raft {
namespace {

struct Range {
  std::int64_t min;
  std::int64_t max;
  bool odd = false;

  bool contains(double value) const {
    return value >= static_cast<double>(min) && value <= static_cast<double>(max) && value == std::floor(value) &&
           (!odd || std::fmod(value, 2) == 1);
  }
  std::string to_string() const {
    return std::string(odd ? "an odd number " : "a whole number ") + std::to_string(min) + " .. " +
           common::with_thousands(max);
  }
};

[[noreturn]] void refuse(const std::string& name, const std::string& value, const std::string& expected) {
  throw CLI::ValidationError(name, "\"" + common::one_line(value, 40) + "\" (expected: " + expected + ")");
}

}  // namespace

ParsedOptions parse_options(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Raft leader election between nodes in one process that exchange datagrams on 127.0.0.1. The timers of\n"
      "each node are hwt::RepeatedTimers on one shared hwt::HashedWheelTimer. A leader is elected and killed;\n"
      "another one is elected in a higher term; then so many followers are killed that it hears from no\n"
      "majority any more, and it steps down. Prints what happens when.\n\n"
      "Exit status: 0, also after Ctrl-C; 1 if two nodes led in one term, if a step took too long, and for an\n"
      "error while running; 2 for an argument that is not valid.\n",
      "raft_elections");
  // Not CLI11's own conversions and checks: they round, and do not always name value and range.
  const auto number = [&app](const std::string& name, const std::string& help, auto& target, const Range& range,
                             const std::string& default_text) {
    app.add_option_function<std::string>(
           name,
           [&target, name, range](const std::string& text) {
             const std::optional<double> value = common::parse_number(text);
             if (!value || !range.contains(*value)) refuse(name, text, range.to_string());
             using Target = std::decay_t<decltype(target)>;
             if constexpr (std::is_arithmetic_v<Target>) {
               target = static_cast<Target>(*value);
             } else {
               target = Target(static_cast<typename Target::rep>(*value));
             }
           },
           help)
        ->default_str(default_text)
        ->type_name("NUMBER");
  };
  number("--nodes", "How many nodes", options.nodes, {3, 9, true}, "3");
  number("--election-timeout-ms",
         "A follower that hears nothing for once to twice this time, at random, becomes a candidate; heartbeats come "
         "ten times as often",
         options.election_timeout, {20, 10'000}, "150");
  number("--tick-ms", "Tick of the timer, at most a tenth of the election timeout", options.tick, {1, 1000}, "5");
  number("--within-ms", "What each step may take", options.within, {1, 600'000}, "10000");
  number("--seed", "Of the random timeouts", options.seed, {0, 9'007'199'254'740'992}, "1");
  try {
    app.parse(argc, argv);
    if (options.tick * 10 > options.election_timeout) {
      refuse("--tick-ms", std::to_string(options.tick.count()),
             "at most a tenth of the election timeout, " + std::to_string(options.election_timeout.count() / 10));
    }
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return {std::nullopt, app.exit(error)};
    std::cerr << "raft_elections: " << common::one_line(error.what()) << "; see --help\n";
    return {std::nullopt, 2};
  }
  return {options, 0};
}

}  // namespace raft
