#include "report.h"

#include <cmath>
#include <iomanip>
#include <ostream>
#include <string_view>

#include "common/format.h"

namespace rpc {
namespace {

constexpr int kLabelWidth = 22;
constexpr int kNumberWidth = 12;

double milliseconds(std::chrono::nanoseconds value) { return std::chrono::duration<double, std::milli>(value).count(); }

class Lines {
 public:
  explicit Lines(std::ostream& out) : out_(out) {}

  void text(std::string_view line) { out_ << line << '\n'; }
  void number(std::string_view label, std::int64_t value, std::string_view note = "") {
    row(label, common::with_thousands(value), note);
  }
  void row(std::string_view label, std::string_view value, std::string_view note = "") {
    out_ << "  " << std::left << std::setw(kLabelWidth) << label << std::right << std::setw(kNumberWidth) << value;
    if (!note.empty()) out_ << "  " << note;
    out_ << '\n';
  }
  void quantiles(std::string_view label, const Histogram& histogram) {
    out_ << "  " << std::left << std::setw(kLabelWidth) << label << std::right;
    if (histogram.count() == 0) {
      out_ << std::setw(kNumberWidth) << "none" << '\n';
      return;
    }
    for (const double q : {0.5, 0.99, 0.999}) {
      out_ << std::setw(kNumberWidth) << common::fixed(milliseconds(histogram.quantile(q)), 2);
    }
    out_ << std::setw(kNumberWidth) << common::fixed(milliseconds(histogram.max()), 2) << '\n';
  }

 private:
  std::ostream& out_;
};

std::string percent_of(std::int64_t part, std::int64_t whole) {
  return common::fixed(whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole), 3) + " %";
}

}  // namespace

void write_report(std::ostream& out, const Options& options, const Results& results, const WorkerUse& worker,
                  const hwt::TimerStats& timer) {
  Lines lines(out);
  const double load_seconds = std::chrono::duration<double>(results.load_time).count();
  lines.text(common::counted(options.in_flight, "request") + " in flight on " +
             common::counted(options.connections, "connection") + " for " + common::fixed(load_seconds, 1) +
             " s, timeout " + std::to_string(options.timeout.count()) + " ms, tick " +
             std::to_string(options.tick.count()) + " ms");

  lines.text("\nRequests");
  lines.number("requests", results.requests);
  lines.number("answered", results.answered, percent_of(results.answered, results.requests));
  lines.number("timed out", results.timed_out, percent_of(results.timed_out, results.requests));
  lines.number("late answers", results.late_answers, "answered after the timeout");
  lines.number("lost", results.lost, "neither answered nor timed out; must be 0");
  lines.number("doubled", results.doubled, "completed twice; must be 0");
  lines.number("early", results.early, "timed out too early; must be 0");

  lines.text("\nMilliseconds                     p50         p99       p99.9         max");
  lines.quantiles("latency, answered", results.answered_latency);
  lines.quantiles("latency, timed out", results.timed_out_latency);
  lines.quantiles("timeout lateness", results.lateness);

  lines.text("\nTimer");
  lines.row("schedule+cancel",
            common::with_thousands(std::llround(static_cast<double>(results.answered_under_load) / load_seconds)),
            "pairs per second");
  if (worker.cpu_time) {
    lines.row("worker thread", percent_of(worker.cpu_time->count(), worker.wall_time.count()), "of one processor");
  } else {
    lines.row("worker thread", "n/a", "this system does not tell its processor time");
  }
  lines.number("scheduled", timer.scheduled);
  lines.number("cancelled", timer.cancelled);
  lines.number("expired", timer.expired);
  lines.number("rejected", timer.rejected);
  lines.number("unprocessed", timer.unprocessed, "pending when the timer was stopped");
  lines.number("pending", timer.pending);
  lines.number("backlog", timer.backlog, "not yet in the wheel");
  lines.number("ticks", timer.ticks);
  lines.number("wakeups", timer.wakeups);
  lines.number("task errors", timer.task_errors);
  lines.row("last lag", common::fixed(milliseconds(timer.last_lag), 2) + " ms",
            "from the end of a tick until its tasks had run");
  lines.row("max lag", common::fixed(milliseconds(timer.max_lag), 2) + " ms");
}

}  // namespace rpc
