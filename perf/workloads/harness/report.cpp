#include "harness/report.h"

#include <string>

#include "harness/format.h"
#include "harness/json_object.h"

namespace perf {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

std::string runtime() {
#if defined(__clang__)
  return "clang " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__) + "." +
         std::to_string(__clang_patchlevel__);
#elif defined(__GNUC__)
  return "gcc " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__) + "." +
         std::to_string(__GNUC_PATCHLEVEL__);
#else
  return "unknown compiler";
#endif
}

JsonObject description(const Runner& runner) {
  JsonObject json;
  json.add("runner", runner.name);
  json.add("version", runner.version);
  json.add("runtime", runtime());
  return json;
}

double ns_per_operation(const OperationFigures& figures, std::chrono::nanoseconds time) {
  return static_cast<double>(time.count()) / static_cast<double>(figures.operations);
}

struct AddFigures {
  JsonObject& json;

  void operator()(const OperationFigures& figures) const {
    json.add("operations", figures.operations);
    json.add("cpu_ns_per_op", ns_per_operation(figures, figures.cpu));
    json.add("wall_ns_per_op", ns_per_operation(figures, figures.wall));
    json.add("wall_ms", Milliseconds(figures.wall).count());
    json.add("scheduled", figures.scheduled);
    json.add("fired", figures.fired);
    json.add("fired_sum", std::to_string(figures.fired_sum));
    json.add("cancelled", figures.cancelled);
    json.add("cancelled_sum", std::to_string(figures.cancelled_sum));
  }
  void operator()(const MemoryFigures& figures) const { json.add("bytes_per_timeout", figures.bytes_per_timeout); }
  void operator()(const RestFigures& figures) const {
    json.add("cpu_ms_per_s", figures.cpu_ms_per_s);
    json.add("wakeups_per_s", figures.wakeups_per_s);
  }
  void operator()(const LateFigures& figures) const {
    json.add("late_us", figures.late_us);
    json.add("early", figures.early);
  }
};

struct ToText {
  std::string operator()(const OperationFigures& figures) const {
    const auto count = [](std::int64_t value) { return with_thousands(static_cast<std::uint64_t>(value)); };
    return count(figures.operations) + " operations in " + fixed(Milliseconds(figures.wall).count(), 1) + " ms, " +
           fixed(ns_per_operation(figures, figures.cpu), 1) + " ns of CPU time each; scheduled " +
           count(figures.scheduled) + ", fired " + count(figures.fired) + ", cancelled " + count(figures.cancelled);
  }
  std::string operator()(const MemoryFigures& figures) const {
    return fixed(figures.bytes_per_timeout, 1) + " bytes per timeout";
  }
  std::string operator()(const RestFigures& figures) const {
    return fixed(figures.cpu_ms_per_s, 3) + " ms of CPU time per second, " +
           (figures.wakeups_per_s ? fixed(*figures.wakeups_per_s, 1) : "unknown") + " wake-ups per second";
  }
  std::string operator()(const LateFigures& figures) const {
    const auto permille = [&](std::size_t at) { return fixed(figures.late_us[at] / 1000, 3); };
    return "late by " + permille(500) + " ms in the middle, " + permille(990) + " ms at 99%, " + permille(1000) +
           " ms at most; " + with_thousands(static_cast<std::uint64_t>(figures.early)) + " early";
  }
};

std::string heading(const Runner& runner, const Options& options) {
  return runner.name + " " + runner.version + ", " + std::string(name_of(options.workload));
}

/// For what is measured in the loop of a timer that cannot do it from outside.
bool needs_note(const Runner& runner, Workload workload) {
  return runner.one_loop && (workload == Workload::Churn || workload == Workload::Expire ||
                             workload == Workload::Touch || workload == Workload::Late);
}

}  // namespace

std::string description_line(const Runner& runner) { return description(runner).text(); }

std::string round_line(const Runner& runner, const Options& options, int round, const Figures& figures) {
  const bool note = needs_note(runner, options.workload);
  const char* const note_text = "in the loop's own thread";
  if (!options.json) {
    return heading(runner, options) + ", round " + std::to_string(round) + ": " + std::visit(ToText{}, figures) +
           (note ? std::string("; ") + note_text : "");
  }
  JsonObject json = description(runner);
  json.add("workload", name_of(options.workload));
  json.add("threads", options.threads);
  json.add("tick_ms", std::int64_t{options.tick.count()});
  json.add("pending", options.pending);
  json.add("count", options.count);
  json.add("seed", options.seed);
  json.add("round", round);
  std::visit(AddFigures{json}, figures);
  if (note) json.add("note", note_text);
  return json.text();
}

std::string unsupported_line(const Runner& runner, const Options& options, std::string_view why) {
  if (!options.json) return heading(runner, options) + ": not supported: " + std::string(why);
  JsonObject json = description(runner);
  json.add("workload", name_of(options.workload));
  json.add("unsupported", why);
  return json.text();
}

}  // namespace perf
