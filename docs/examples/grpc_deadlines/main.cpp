// gRPC calls with limits on the server, and with hedging and retries on the client, all on one shared timer.
//
// server.h has the limit (StopAfter), question.h the hedge, client.h the retries.

#include "client.h"
#include "common/common.h"
#include "common/picture.h"
#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "server.h"
#include "work.h"

namespace store {
namespace {

using common::text_of;

constexpr std::chrono::milliseconds kTick{1};

std::string conditions(const Load& load, const Limits& limits, const Results& results) {
  return text_of(load.in_flight) + " in flight for " + common::in_seconds(results.load_time) + "; deadline " +
         text_of(load.deadline) + ", limits Get " + text_of(limits.get) + ", Put " + text_of(limits.put);
}

std::vector<std::string> quantiles(const std::string& name, const common::Histogram& histogram) {
  std::vector<std::string> cells{name};
  for (const common::Mark& mark : common::percentiles_of(histogram)) cells.push_back(text_of(mark.at));
  cells.resize(5, "none");
  return cells;
}

void report(const Load& load, const Limits& limits, const Results& results, const Served& served,
            const hwt::TimerStats& timer) {
  common::Report report(conditions(load, limits, results));
  report.section("Calls");
  report.line("calls", results.calls);
  report.line("answered", results.answered, common::percent_of(results.answered, results.calls));
  report.line("over the limit", results.over_limit, "ended by the server as DEADLINE_EXCEEDED");
  report.line("failed", results.failed, "refused in the last attempt, or another error");
  report.line("retried", results.retried, "after a backoff with jitter");
  report.line("hedged", results.hedged, "sent again because the first attempt took long");
  report.line("won by the hedge", results.won_by_hedge);
  report.line("lost", results.lost, "did not end; must be 0");
  report.line("doubled", results.doubled, "ended twice; must be 0");

  report.section("Times");
  report.table({{"", "p50", "p99", "p99.9", "max"},
                quantiles("Get without hedging", results.plain.all),
                quantiles("Get with hedging", results.hedged_get.all),
                quantiles("Put", results.put.all)});
  report.line("hedge after", results.hedge_after, "quantile " + common::formatted("%g", load.hedge_at) + " of Get");

  report.section("Server");
  report.line("attempts", served.calls.load());
  report.line("answered", served.answered.load());
  report.line("stopped at the limit", served.over_limit.load());
  report.line("stopped by the client", served.cancelled.load(), "it had another answer, or gave up");
  report.line("refused", served.refused.load(), "as UNAVAILABLE");
  report.line("early", served.early.load(), "stopped before the limit; must be 0");
  report.line("left behind", served.left_behind(), "still at work; must be 0");

  report.section("Timer");
  report.line("scheduled", timer.scheduled);
  report.line("cancelled", timer.cancelled);
  report.line("expired", timer.expired);
  report.line("unprocessed", timer.unprocessed, "pending when the timer was stopped");
  report.line("max lag", timer.max_lag, "from the end of a tick until its tasks had run");
  common::print(report.text());
}

/// Both panels have the same axis, so that they can be compared.
common::Panel panel(const std::string& title, const Latencies& latencies, const Limits& limits,
                    const Results& results) {
  double from = 1e12;
  double to = static_cast<double>(std::chrono::nanoseconds(limits.get).count());
  for (const Latencies* both : {&results.plain, &results.hedged_get}) {
    if (both->all.count() == 0) continue;
    from = std::min(from, static_cast<double>(both->all.min().count()));
    to = std::max(to, static_cast<double>(both->all.max().count()));
  }
  std::vector<common::Mark> marks = common::percentiles_of(latencies.all);
  marks.push_back({"limit of the server", limits.get, true});
  return {.title = title,
          .x_label = "time from sending a Get to its end, logarithmic",
          .y_label = "calls per 60th of the axis",
          .logarithmic = true,
          .from = common::round_125(std::clamp(from * 0.8, 1e3, to / 2), false),
          .to = common::round_125(to * 1.2, true),
          .bars = 60,
          .tick = static_cast<double>(std::chrono::nanoseconds(kTick).count()),
          .series = {{"answered", "#4c8fd6", &latencies.answered}, {"failed", "#e8833a", &latencies.failed}},
          .marks = std::move(marks)};
}

void expect_less(const std::string& name, std::chrono::milliseconds limit, std::chrono::milliseconds deadline) {
  if (limit < deadline) return;
  common::Options::refuse(name, std::to_string(limit.count()), "less than the deadline, " + text_of(deadline));
}

bool run(common::Options& options) {
  Load load;
  Limits limits;
  Work::Settings settings;
  std::string svg = "grpc_deadlines.svg";
  options.number("--in-flight", load.in_flight, {1, 10'000}, "Calls in flight");
  options.number("--seconds", load.seconds, {0.1, 86'400}, "Time in which calls are made");
  options.number("--deadline-ms", load.deadline, {2, 60'000}, "Deadline of a call");
  options.number("--get-limit-ms", limits.get, {1, 60'000}, "Limit of the server's work on a Get");
  options.number("--put-limit-ms", limits.put, {1, 60'000}, "Limit of the server's work on a Put");
  options.percentage("--hedge-at", load.hedge_at, "Quantile of the latency after which a Get is sent again");
  options.number("--latency-median-ms", settings.median_ms, {0.001, 60'000}, "Median of the work on a call");
  options.percentage("--slow", settings.slow, "Share of the calls that take ten times as long");
  options.percentage("--refuse", settings.refused, "Share of the calls that the server refuses at once");
  options.number("--seed", settings.seed, {0, 0x1p53}, "Seed of the work and the refusals");
  options.text("--svg", "FILE", svg, "File of the picture", [&](const std::string& path) { svg = path; });
  options.parse();
  expect_less("--get-limit-ms", limits.get, load.deadline);
  expect_less("--put-limit-ms", limits.put, load.deadline);
  const common::PictureFile picture("--svg", svg);

  Work work(settings);
  hwt::HashedWheelTimer timer({.tick_duration = kTick, .on_task_error = common::give_up});
  Server server(timer, limits, work);
  Client client(timer, load, server.address());
  client.run();
  server.stop();
  timer.stop();

  const Results results = client.results();
  report(load, limits, results, server.served(), timer.stats());
  const bool has_hedged = results.hedged_get.all.count() > 0;
  const std::string hedged_after = has_hedged ? ": a second attempt after " + text_of(results.hedge_after) : "";
  picture.draw(common::counted(results.calls, "gRPC call") + "; every other Get is hedged",
               conditions(load, limits, results) + "; " + text_of(results.hedged) + " hedged, " +
                   text_of(results.won_by_hedge) + " won by the hedge",
               {panel("Get without hedging", results.plain, limits, results),
                panel("Get with hedging" + hedged_after, results.hedged_get, limits, results)});
  common::print("\nPicture: " + svg + '\n');
  return results.lost == 0 && results.doubled == 0 && server.served().early == 0 && server.served().left_behind() == 0;
}

}  // namespace
}  // namespace store

int main(int argc, char** argv) {
  return common::run_example(
      argc, argv,
      {"grpc_deadlines",
       "An asynchronous gRPC server and client. The server limits the work on a call with hwt::StopAfter. The client\n"
       "hedges every other Get and retries refused calls. Ends with a report and a picture of latency with and "
       "without\n"
       "hedging.",
       "a call was lost, ended twice, stopped early or left behind"},
      store::run);
}
