#include "options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <iostream>
#include <string>
#include <system_error>

#include "common/format.h"

namespace idle {
namespace {

struct Bounds {
  std::int64_t min;
  std::int64_t max;
};

std::string quoted(const std::string& text) { return '"' + common::one_line(text, 40) + '"'; }

// Not CLI11's own conversion: its errors do not name the range.
std::int64_t whole_number(const std::string& name, const std::string& text, const Bounds& bounds) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < bounds.min || value > bounds.max) {
    throw CLI::ValidationError(name, quoted(text) + " (expected: a whole number " + std::to_string(bounds.min) +
                                         " .. " + std::to_string(bounds.max) + ")");
  }
  return value;
}

}  // namespace

ParsedOptions parse_options(int argc, char** argv) {
  Options options;
  CLI::App app(
      "A server on 127.0.0.1 that closes connections which have been silent for too long, one hwt::PassiveWheel\n"
      "driving its epoll loop, and the client that opens them. Some of the connections stay active; the others\n"
      "fall silent one after the other.\n\n"
      "Exit status: 0; 1 if a connection was closed too early, an active one was closed or an idle one was not,\n"
      "and for an error while running; 2 for an argument that is not valid.\n",
      "idle_connections");
  const auto number = [&app](const std::string& name, const std::string& help, const Bounds& bounds, auto& target,
                             const std::string& preset) {
    app.add_option_function<std::string>(
           name,
           [&target, name, bounds](const std::string& text) {
             target = static_cast<std::decay_t<decltype(target)>>(whole_number(name, text, bounds));
           },
           help)
        ->default_str(preset)
        ->type_name("NUMBER");
  };
  std::int64_t limit_ms = options.limit.count();
  std::int64_t tick_ms = options.tick.count();
  std::int64_t duration_ms = options.duration.count();
  number("--connections", "TCP connections; fewer if the system allows fewer open files", {1, 25'000},
         options.connections, "10000");
  number("--active", "Those of them that are never silent for long; not given: a tenth", {0, 25'000}, options.active,
         "");
  number("--limit-ms", "How long a connection may be silent", {20, 3'600'000}, limit_ms, std::to_string(limit_ms));
  number("--tick-ms", "Tick of the wheel: a connection is closed up to one tick later", {1, 10'000}, tick_ms,
         std::to_string(tick_ms));
  number("--run-ms", "How long to go on when all are connected; Ctrl-C ends it earlier", {1, 86'400'000}, duration_ms,
         std::to_string(duration_ms));
  try {
    app.parse(argc, argv);
    if (app.count("--active") == 0) options.active = options.connections / 10;
    if (options.active > options.connections) {
      throw CLI::ValidationError("--active", quoted(std::to_string(options.active)) + " (expected: at most the " +
                                                 std::to_string(options.connections) + " of --connections)");
    }
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return {std::nullopt, app.exit(error)};
    std::cerr << "idle_connections: " << common::one_line(error.what()) << "; see --help\n";
    return {std::nullopt, 2};
  }
  options.limit = std::chrono::milliseconds(limit_ms);
  options.tick = std::chrono::milliseconds(tick_ms);
  options.duration = std::chrono::milliseconds(duration_ms);
  return {options, 0};
}

}  // namespace idle
