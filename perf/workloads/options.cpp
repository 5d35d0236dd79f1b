#include "perf/workloads/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <limits>

namespace hwt::perf {
namespace {

void number(CLI::App& app, const char* name, auto& value, std::int64_t low, std::int64_t high, const char* help) {
  app.add_option(name, value, help)->check(CLI::Range(low, high))->capture_default_str();
}

}  // namespace

Options parse_options(int argc, char** argv, const std::vector<std::string>& timers) {
  Options options;
  options.timer = timers.front();
  std::int64_t seconds = options.seconds.count();
  CLI::App app("Runs one workload on one timer and prints the figures as one JSON object.");
  app.add_option("WORKLOAD", options.workload)
      ->check(CLI::IsMember(std::vector<std::string>{"churn", "handoff", "expire", "memory", "idle", "far", "late",
                                                     "rate", "touch", "load"}));
  if (timers.size() > 1) {
    app.add_option("--timer", options.timer)->check(CLI::IsMember(timers))->capture_default_str();
  }
  app.add_option("--load", options.load, "Kind of load")
      ->check(CLI::IsMember(std::vector<std::string>{"crowd", "ended", "mass-cancel", "random-cancel"}))
      ->capture_default_str();
  number(app, "--threads", options.threads, 1, 256, "Threads; in handoff, pairs of threads");
  number(app, "--tick-ms", options.tick_ms, 1, 10'000, "Tick of the timer");
  if (timers.size() > 1) {
    number(app, "--tick-us", options.tick_us, 0, 999,
           "Tick in microseconds instead of --tick-ms, for --timer hierarchical");
  }
  number(app, "--count", options.count, 1, 1'000'000'000, "Operations of all threads together");
  number(app, "--pending", options.pending, 1, 100'000'000, "Pending timeouts");
  number(app, "--seconds", seconds, 1, 600, "Duration of idle, far, and load of the kinds crowd and ended");
  number(app, "--far-threads", options.far_threads, 0, 10'000,
         "In late, this number of threads first schedule `pending` timeouts of an hour each");
  number(app, "--due-ms", options.due_ms, 0, 1'000, "In rate, another timeout is due at this interval; 0: none");
  number(app, "--warmup", options.warmup, 0, 1'000, "Unmeasured rounds before the measured one");
  number(app, "--seed", options.seed, 0, std::numeric_limits<std::int64_t>::max(), "Seed of the random numbers");
  app.add_flag("--in-turn", options.in_turn, "Delays of expire: 1, 2 ... 999, 0, 1 ... ms instead of random ones");
  app.add_flag("--describe", options.describe, "Print the name and version of the timer and exit");
  try {
    app.parse(argc, argv);
    if (options.workload.empty() && !options.describe) throw CLI::RequiredError("WORKLOAD");
    if (options.tick_us != 0 && options.timer != "hierarchical") {
      throw CLI::ValidationError("--tick-us",
                                 "Value " + std::to_string(options.tick_us) + " is for the hierarchical timer alone");
    }
    if (options.workload == "touch" && options.pending < options.threads) {
      throw CLI::ValidationError("--pending", "Value " + std::to_string(options.pending) +
                                                  " is less than one for each of the " +
                                                  std::to_string(options.threads) + " threads");
    }
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) std::exit(app.exit(error));
    std::cerr << "error: " << error.what() << '\n';
    std::exit(2);
  }
  options.seconds = std::chrono::seconds(seconds);
  return options;
}

}  // namespace hwt::perf
