#include "picture.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include "common/format.h"
#include "svg_histogram.h"

namespace rpc {
namespace {

std::vector<svg::Mark> percentiles_of(const Histogram& histogram) {
  if (histogram.count() == 0) return {};
  return {{"p50", histogram.quantile(0.5)},
          {"p99", histogram.quantile(0.99)},
          {"p99.9", histogram.quantile(0.999)},
          {"max", histogram.max()}};
}

/// The largest (or, upwards, smallest) 1, 2 or 5 times a power of ten on that side of the value.
double round_125(double value, bool upwards) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  const double factor = value / power;
  if (upwards) return power * (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10);
  return power * (factor >= 5 ? 5 : factor >= 2 ? 2 : 1);
}

svg::Panel latency_panel(const Options& options, const Results& results) {
  constexpr double shortest = 1e3;  // one microsecond
  const auto timeout = static_cast<double>(std::chrono::nanoseconds(options.timeout).count());
  double from = timeout;
  double to = timeout;
  for (const Histogram* histogram : {&results.answered_latency, &results.timed_out_latency}) {
    if (histogram->count() == 0) continue;
    from = std::min(from, static_cast<double>(histogram->min().count()));
    to = std::max(to, static_cast<double>(histogram->max().count()));
  }
  std::vector<svg::Mark> marks = percentiles_of(results.answered_latency);
  marks.push_back({"timeout", options.timeout, true});
  return {"Request latency (percentiles: answered requests)",
          "time from sending the request to its answer or timeout, logarithmic",
          "requests per bar",
          svg::Scale::Logarithmic,
          round_125(std::max(shortest, from * 0.8), false),
          round_125(to * 1.2, true),
          120,
          {{"answered", "#4c8fd6", &results.answered_latency}, {"timed out", "#e8833a", &results.timed_out_latency}},
          std::move(marks)};
}

svg::Panel lateness_panel(const Options& options, const Results& results) {
  // In quarters of a tick, so that a bar ends at the tick. Outliers of a stalled machine must not squeeze the rest.
  const double quarter = static_cast<double>(std::chrono::nanoseconds(options.tick).count()) / 4;
  const double needed = std::ceil(static_cast<double>(results.lateness.quantile(0.99).count()) / quarter + 0.2);
  const int quarters = static_cast<int>(std::clamp(needed, 5.0, 40.0));
  std::vector<svg::Mark> marks = percentiles_of(results.lateness);
  marks.push_back({"one tick", options.tick, true});
  return {"Timeout lateness",
          "time from the end of a request's timeout to the start of its timeout task",
          "timeouts per bar",
          svg::Scale::Linear,
          0,
          quarters * quarter,
          quarters * std::max(2, 75 / quarters),
          {{"timed out", "#e8833a", &results.lateness}},
          std::move(marks)};
}

}  // namespace

void write_picture(std::ostream& out, const Options& options, const Results& results) {
  const std::chrono::duration<double> load_time = results.load_time;
  const std::string subtitle = common::with_thousands(options.in_flight) + " in flight on " +
                               common::counted(options.connections, "connection") + " for " +
                               common::fixed(load_time.count(), 1) + " s; timeout " +
                               common::short_duration(options.timeout) + ", tick " +
                               common::short_duration(options.tick) + "; " + common::with_thousands(results.answered) +
                               " answered, " + common::with_thousands(results.timed_out) + " timed out";
  svg::write(out, common::counted(results.requests, "request") + ", each with a timeout on one wheel timer", subtitle,
             {latency_panel(options, results), lateness_panel(options, results)});
}

}  // namespace rpc
