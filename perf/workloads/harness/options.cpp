#include "harness/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <limits>
#include <string>

#include "harness/format.h"

namespace perf {
namespace {

/// The defaults of a workload; 0: it does not use the option.
struct WorkloadInfo {
  std::string_view name;
  Workload workload;
  std::uint64_t threads;
  std::uint64_t tick_ms;
  std::uint64_t pending;
  std::uint64_t count;
  std::uint64_t seconds;
};

constexpr std::array<WorkloadInfo, 7> kWorkloads{{
    {"churn", Workload::Churn, 1, 1, 1'000, 5'000'000, 0},
    {"expire", Workload::Expire, 1, 1, 0, 6'000'000, 0},
    {"memory", Workload::Memory, 0, 100, 2'000'000, 0, 0},
    {"idle", Workload::Idle, 0, 1, 0, 0, 5},
    {"far", Workload::Far, 0, 1, 1'000'000, 0, 5},
    {"late", Workload::Late, 0, 1, 0, 20'000, 0},
    {"touch", Workload::Touch, 1, 1, 100'000, 5'000'000, 0},
}};

std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

std::string workload_names() {
  std::vector<std::string> names;
  for (const WorkloadInfo& info : kWorkloads) names.emplace_back(info.name);
  return listed(names);
}

struct Bounds {
  std::uint64_t min;
  std::uint64_t max;
};

[[noreturn]] void refuse(const std::string& name, const std::string& value, const std::string& expected) {
  throw CLI::ValidationError(name, "\"" + one_line(value, 40) + "\" (expected: " + expected + ")");
}

std::uint64_t number_in(const std::string& name, const std::string& text, const Bounds& bounds) {
  const std::optional<std::uint64_t> value = parse_whole_number(text);
  if (!value || *value < bounds.min || *value > bounds.max) {
    refuse(name, text, "a whole number " + with_thousands(bounds.min) + " .. " + with_thousands(bounds.max));
  }
  return *value;
}

const WorkloadInfo& workload_of(const std::string& text) {
  for (const WorkloadInfo& info : kWorkloads) {
    if (info.name == text) return info;
  }
  refuse("WORKLOAD", text, workload_names());
}

std::size_t timer_of(const std::string& text, const std::vector<std::string>& timers) {
  const auto timer = std::find(timers.begin(), timers.end(), text);
  if (timer == timers.end()) refuse("--timer", text, listed(timers));
  return static_cast<std::size_t>(timer - timers.begin());
}

/// As on the command line; nothing: not given.
struct Given {
  const WorkloadInfo* workload = nullptr;
  std::optional<std::uint64_t> threads;
  std::optional<std::uint64_t> tick_ms;
  std::optional<std::uint64_t> count;
  std::optional<std::uint64_t> pending;
  std::optional<std::uint64_t> seconds;
  std::optional<std::uint64_t> rounds;
  std::optional<std::uint64_t> warmup;
  std::optional<std::uint64_t> seed;
};

void complete(const Given& given, Options& options) {
  const WorkloadInfo& info = *given.workload;
  const auto value = [](const std::optional<std::uint64_t>& from, std::uint64_t default_value) {
    return static_cast<std::int64_t>(default_value == 0 ? 0 : from.value_or(default_value));
  };
  options.workload = info.workload;
  options.threads = info.threads == 0 ? 1 : static_cast<int>(value(given.threads, info.threads));
  options.tick = std::chrono::milliseconds(value(given.tick_ms, info.tick_ms));
  options.pending = value(given.pending, info.pending);
  options.count = value(given.count, info.count);
  options.seconds = std::chrono::seconds(value(given.seconds, info.seconds));
  options.rounds = static_cast<int>(given.rounds.value_or(1));
  options.warmup = static_cast<int>(given.warmup.value_or(0));
  options.seed = given.seed.value_or(1);
  if (options.workload == Workload::Touch && options.pending < options.threads) {
    refuse("--pending", std::to_string(options.pending),
           "at least one for each of the " + std::to_string(options.threads) + " threads");
  }
}

}  // namespace

std::string_view name_of(Workload workload) {
  for (const WorkloadInfo& info : kWorkloads) {
    if (info.workload == workload) return info.name;
  }
  return {};
}

ParsedOptions parse_options(int argc, char** argv, std::string_view runner, const std::vector<std::string>& timers) {
  Options options;
  Given given;
  CLI::App app(
      "Runs one workload on one timer and prints a line for each round.\n\nExit status: 0; 1 for an error "
      "while running; 2 for an option that is not valid.\n",
      std::string(runner));
  // Not CLI11's own conversions and checks: they do not always name value and range.
  const auto number = [&app](const std::string& name, const std::string& help, std::optional<std::uint64_t>& target,
                             const Bounds& bounds) {
    app.add_option_function<std::string>(
           name, [&target, name, bounds](const std::string& text) { target = number_in(name, text, bounds); }, help)
        ->type_name("NUMBER");
  };
  app.add_option_function<std::string>(
         "WORKLOAD", [&given](const std::string& text) { given.workload = &workload_of(text); },
         "One of " + workload_names())
      ->type_name("");
  if (timers.size() > 1) {
    app.add_option_function<std::string>(
           "--timer", [&](const std::string& text) { options.timer = timer_of(text, timers); },
           "One of " + listed(timers))
        ->type_name("");
  }
  number("--threads", "Threads that schedule and cancel", given.threads, {1, 256});
  number("--tick-ms", "Tick of the timer", given.tick_ms, {1, 10'000});
  number("--count", "Operations, of all threads together", given.count, {1, 1'000'000'000});
  number("--pending", "Timeouts that are kept pending", given.pending, {1, 100'000'000});
  number("--seconds", "How long to measure", given.seconds, {1, 600});
  number("--rounds", "Rounds that are measured", given.rounds, {1, 1'000});
  number("--warmup", "Rounds before them", given.warmup, {0, 1'000});
  number("--seed", "Of all random numbers", given.seed, {0, (std::numeric_limits<std::uint64_t>::max)()});
  app.add_flag("--json", options.json, "One JSON object a round");
  app.add_flag("--describe", options.describe, "Print what this is and which version, and end");
  try {
    app.parse(argc, argv);
    if (!options.describe) {
      if (given.workload == nullptr)
        throw CLI::ValidationError("WORKLOAD", "missing (expected: " + workload_names() + ")");
      complete(given, options);
    }
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return {std::nullopt, app.exit(error)};
    std::cerr << runner << ": " << one_line(error.what()) << "; see --help\n";
    return {std::nullopt, 2};
  }
  return {options, 0};
}

}  // namespace perf
