#include "perf/workloads/runner.h"

#include <algorithm>
#include <iostream>

namespace hwt::perf {
namespace {

void add_round(Json& answer, const Runner& runner, const Options& options) {
  answer["workload"] = options.workload;
  const bool across_threads =
      options.threads > 1 || options.far_threads > 0 || options.workload == "handoff" || options.workload == "load";
  if (runner.one_loop && across_threads) {
    answer["unsupported"] = "no cancel across threads";
    return;
  }
  for (int round = 0; round < options.warmup; ++round) runner.measure(options);
  answer["threads"] = options.threads;
  answer["tick_ms"] = options.tick_ms;
  if (options.tick_us != 0) answer["tick_us"] = options.tick_us;
  answer["pending"] = options.pending;
  answer["count"] = options.count;
  answer["seed"] = options.seed;
  answer.update(runner.measure(options));
  // A timer of one loop is used only on the thread of that loop.
  const bool in_loop =
      runner.one_loop && (answer.contains("operations") || answer.contains("late_us") || answer.contains("kept_mib"));
  const std::string note = in_loop ? "in the loop's own thread" : "";
  const std::string both = note + (note.empty() || runner.note.empty() ? "" : "; ") + runner.note;
  if (!both.empty()) answer["note"] = both;
}

}  // namespace

int run(const std::vector<Runner>& timers, int argc, char** argv) {
  std::vector<std::string> names;
  for (const Runner& timer : timers) names.push_back(timer.timer);
  const Options options = parse_options(argc, argv, names);
  const Runner& runner =
      *std::find_if(timers.begin(), timers.end(), [&](const Runner& timer) { return timer.timer == options.timer; });
  Json answer = {{"runner", runner.name}, {"version", runner.version}, {"runtime", HWT_RUNTIME}};
  if (!options.describe) add_round(answer, runner, options);
  std::cout << answer.dump() << std::endl;
  return std::cout ? 0 : 1;
}

}  // namespace hwt::perf
