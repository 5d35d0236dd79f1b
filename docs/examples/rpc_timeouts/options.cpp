#include "options.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <sstream>
#include <string_view>
#include <type_traits>

#include "common/format.h"
#include "common/numbers.h"

namespace rpc {
namespace {

struct Bounds {
  double min;
  double max;
  bool whole = false;

  std::string to_string() const {
    std::ostringstream text;
    text << (whole ? "a whole number " : "a number ") << min << " .. "
         << common::with_thousands(static_cast<std::int64_t>(max));
    return text.str();
  }
};

[[noreturn]] void refuse(const std::string& name, const std::string& value, const std::string& expected) {
  throw CLI::ValidationError(name, "\"" + common::one_line(value, 40) + "\" (expected: " + expected + ")");
}

double number_in(const std::string& name, const std::string& text, const Bounds& bounds) {
  const std::optional<double> value = common::parse_number(text);
  if (!value || *value < bounds.min || *value > bounds.max || (bounds.whole && *value != std::floor(*value))) {
    refuse(name, text, bounds.to_string());
  }
  return *value;
}

double share(const std::string& name, const std::string& text) {
  const bool percent = !text.empty() && text.back() == '%';
  const std::optional<double> value =
      common::parse_number(percent ? std::string_view(text).substr(0, text.size() - 1) : text);
  const double result = value.value_or(-1) / (percent ? 100 : 1);
  if (!(result >= 0 && result <= 1)) refuse(name, text, "a share 0 .. 1 or 0% .. 100%");
  return result;
}

}  // namespace

ParsedOptions parse_options(int argc, char** argv) {
  Options options;
  CLI::App app(
      "A small request/response server and client over TCP on 127.0.0.1. Each request has a timeout on one\n"
      "shared hwt::HashedWheelTimer: the answer cancels it, expiry completes the request as timed out. Ends\n"
      "with a report and a picture of request latency and timeout lateness.\n\n"
      "Exit status: 0; 1 if a request was lost, completed twice or timed out early, and for an error while\n"
      "running; 2 for an argument or a latencies file that is not valid.\n",
      "rpc_timeouts");
  // Not CLI11's own conversions and checks: they round, let NaN pass, and do not always name value and range.
  const auto number = [&app](const std::string& name, const std::string& help, auto& target, const Bounds& bounds,
                             const std::string& default_text) {
    return app
        .add_option_function<std::string>(
            name,
            [&target, name, bounds](const std::string& text) {
              using Target = std::decay_t<decltype(target)>;
              if constexpr (std::is_arithmetic_v<Target>) {
                target = static_cast<Target>(number_in(name, text, bounds));
              } else {
                target = Target(static_cast<typename Target::rep>(number_in(name, text, bounds)));
              }
            },
            help)
        ->default_str(default_text)
        ->type_name("NUMBER");
  };
  number("--in-flight", "Requests in flight", options.in_flight, {1, 1'000'000, true}, "2000");
  number("--connections", "TCP connections", options.connections, {1, 10'000, true}, "16");
  number("--timeout-ms", "Timeout of a request", options.timeout, {1, 60'000, true}, "250");
  number("--tick-ms", "Tick of the timer; a timeout is late by up to one, plus what the machine takes to wake a thread",
         options.tick, {1, 10'000, true}, "10");
  number("--seconds", "How long to send requests; Ctrl-C ends it earlier", options.seconds, {0.1, 86'400}, "10");
  app.add_option_function<std::string>(
         "--never-answer",
         [&options](const std::string& text) { options.never_answer = share("--never-answer", text); },
         "Share of the requests that are never answered, 0.01 or 1%")
      ->default_str("1%")
      ->type_name("SHARE");
  auto* median = number("--latency-median-ms", "Median of the server's log-normal latency", options.latency_median_ms,
                        {0.001, 60'000}, "20");
  auto* sigma = number("--latency-sigma", "Its spread, the standard deviation of the logarithm", options.latency_sigma,
                       {0, 5}, "0.8");
  number("--seed", "Of the latencies and of which requests are never answered", options.seed,
         {0, 9'007'199'254'740'992, true}, "1");
  app.add_option("--latencies", options.latencies_file,
                 "Replay these latencies instead, again and again: microseconds, one number a line")
      ->type_name("FILE");
  app.add_option("--svg", options.svg_file, "Where to draw the picture")->type_name("FILE")->capture_default_str();
  app.add_flag("--quiet", options.quiet, "No progress line");
  try {
    app.parse(argc, argv);
    if (!options.latencies_file.empty() && median->count() + sigma->count() > 0) {
      throw CLI::ValidationError("--latencies", "not together with --latency-median-ms or --latency-sigma");
    }
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return {std::nullopt, app.exit(error)};
    std::cerr << "rpc_timeouts: " << common::one_line(error.what()) << "; see --help\n";
    return {std::nullopt, 2};
  }
  return {options, 0};
}

}  // namespace rpc
