// Requests over TCP, each with a timeout on one shared timer.
//
// client.h has a coroutine for each request in flight: send() schedules, take_answer() cancels, time_out() runs on
// expiry.

#include <ctime>

#include "client.h"
#include "common/common.h"
#include "common/picture.h"
#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "latencies.h"
#include "metrics.h"
#include "server.h"

namespace rpc {
namespace {

using common::text_of;

/// Returns the CPU time of this thread, or nothing if the system does not have it.
std::optional<std::chrono::nanoseconds> thread_time() {
#ifdef CLOCK_THREAD_CPUTIME_ID
  timespec used{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) == 0) {
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  }
#endif
  return std::nullopt;
}

std::string conditions(const Load& load, std::chrono::milliseconds tick, const Results& results) {
  return text_of(load.in_flight) + " in flight on " + common::counted(load.connections, "connection") + " for " +
         common::in_seconds(results.load_time) + "; timeout " + text_of(load.timeout) + ", tick " + text_of(tick);
}

std::vector<std::string> quantiles(const std::string& name, const common::Histogram& histogram) {
  std::vector<std::string> cells{name};
  for (const common::Mark& mark : common::percentiles_of(histogram)) cells.push_back(text_of(mark.at));
  cells.resize(5, "none");
  return cells;
}

void report(const Load& load, std::chrono::milliseconds tick, const Results& results, const std::string& worker_use,
            const hwt::TimerStats& timer) {
  common::Report report(conditions(load, tick, results));
  report.section("Requests");
  report.line("requests", results.requests);
  report.line("answered", results.answered, common::percent_of(results.answered, results.requests));
  report.line("timed out", results.timed_out, common::percent_of(results.timed_out, results.requests));
  report.line("late answers", results.late_answers, "answered after the timeout");
  report.line("lost", results.lost, "neither answered nor timed out; must be 0");
  report.line("doubled", results.doubled, "completed twice; must be 0");
  report.line("early", results.early, "timed out too early; must be 0");

  report.section("Times");
  report.table({{"", "p50", "p99", "p99.9", "max"},
                quantiles("latency, answered", results.answered_latency),
                quantiles("latency, timed out", results.timed_out_latency),
                quantiles("timeout lateness", results.lateness)});

  report.section("Timer");
  const double pairs = static_cast<double>(results.answered_under_load) / results.load_time.count();
  report.line("schedule+cancel", std::llround(pairs), "pairs per second");
  report.line("worker thread", worker_use, "of one processor");
  report.line("scheduled", timer.scheduled);
  report.line("cancelled", timer.cancelled);
  report.line("expired", timer.expired);
  report.line("rejected", timer.rejected);
  report.line("unprocessed", timer.unprocessed, "pending when the timer was stopped");
  report.line("pending", timer.pending);
  report.line("backlog", timer.backlog, "not yet in the wheel");
  report.line("ticks", timer.ticks);
  report.line("wakeups", timer.wakeups);
  report.line("task errors", timer.task_errors);
  report.line("last lag", timer.last_lag, "from the end of a tick until its tasks had run");
  report.line("max lag", timer.max_lag);
  common::print(report.text());
}

common::Panel latency_panel(const Load& load, const Results& results) {
  const auto timeout = static_cast<double>(std::chrono::nanoseconds(load.timeout).count());
  double from = timeout;
  double to = timeout;
  for (const common::Histogram* histogram : {&results.answered_latency, &results.timed_out_latency}) {
    if (histogram->count() == 0) continue;
    from = std::min(from, static_cast<double>(histogram->min().count()));
    to = std::max(to, static_cast<double>(histogram->max().count()));
  }
  std::vector<common::Mark> marks = common::percentiles_of(results.answered_latency);
  marks.push_back({"timeout", load.timeout, true});
  return {.title = "Request latency (percentiles: answered requests)",
          .x_label = "time from sending the request to its answer or timeout, logarithmic",
          .y_label = "requests per bar",
          .logarithmic = true,
          .from = common::round_125(std::max(1e3, from * 0.8), false),
          .to = common::round_125(to * 1.2, true),
          .bars = 120,
          .series = {{"answered", "#4c8fd6", &results.answered_latency},
                     {"timed out", "#e8833a", &results.timed_out_latency}},
          .marks = std::move(marks)};
}

common::Panel lateness_panel(std::chrono::nanoseconds tick, const Results& results) {
  // The axis has whole quarters of a tick, and each quarter has the same number of bars. So a bar ends at the tick.
  // Outliers of a stalled machine are cut off.
  const double quarter = static_cast<double>(tick.count()) / 4;
  const double needed = std::ceil(static_cast<double>(results.lateness.quantile(0.99).count()) / quarter + 0.2);
  const int quarters = static_cast<int>(std::clamp(needed, 5.0, 40.0));
  std::vector<common::Mark> marks = common::percentiles_of(results.lateness);
  marks.push_back({"one tick", tick, true});
  return {.title = "Timeout lateness",
          .x_label = "time from the end of a request's timeout to the start of its timeout task",
          .y_label = "timeouts per bar",
          .logarithmic = false,
          .from = 0,
          .to = quarters * quarter,
          .bars = quarters * std::max(2, 75 / quarters),
          .series = {{"timed out", "#e8833a", &results.lateness}},
          .marks = std::move(marks)};
}

bool run(common::Options& options) {
  Load load;
  std::chrono::milliseconds tick(10);
  double never_answer = 0.01;
  double median_ms = 20;
  double sigma = 0.8;
  std::uint64_t seed = 1;
  std::vector<std::chrono::nanoseconds> replayed;
  std::string svg = "rpc_timeouts.svg";
  options.number("--in-flight", load.in_flight, {1, 1'000'000}, "Requests in flight");
  options.number("--connections", load.connections, {1, 10'000}, "TCP connections");
  options.number("--timeout-ms", load.timeout, {1, 60'000}, "Timeout of a request");
  options.number("--tick-ms", tick, {1, 10'000}, "Tick of the timer; timeouts are late by up to one");
  options.number("--seconds", load.seconds, {0.1, 86'400}, "Time in which requests are sent");
  options.percentage("--never-answer", never_answer, "Share of the requests that are never answered");
  options.number("--latency-median-ms", median_ms, {0.001, 60'000}, "Median of the server's log-normal latency");
  options.number("--latency-sigma", sigma, {0, 5}, "Standard deviation of the logarithm of the latency");
  options.number("--seed", seed, {0, 0x1p53}, "Seed of the latencies and of the unanswered requests");
  options.text("--latencies", "FILE", "", "Latencies to replay in a cycle: microseconds, one number a line",
               [&](const std::string& path) { replayed = Latencies::read(path); });
  std::optional<std::uint16_t> metrics_port;
  options.text("--metrics", "PORT", "", "Serve the timer's metrics for Prometheus on 127.0.0.1 (1 .. 65535)",
               [&](const std::string& port) { metrics_port = Metrics::port_of(port); });
  options.text("--svg", "FILE", svg, "File of the picture", [&](const std::string& path) { svg = path; });
  options.parse();
  if (!replayed.empty() && (options.given("--latency-median-ms") || options.given("--latency-sigma"))) {
    throw common::BadArgument("--latencies: not together with --latency-median-ms or --latency-sigma");
  }
  const common::PictureFile picture("--svg", svg);

  // The order matters: the server and the timer's tasks use the client, so the client is destroyed last.
  Client client(load);
  std::optional<std::chrono::nanoseconds> worker_time;  // written when the worker ends
  hwt::HashedWheelTimer timer({.tick_duration = tick,
                               .thread_factory =
                                   [&worker_time](std::function<void()> work) {
                                     return std::thread([&worker_time, work = std::move(work)] {
                                       work();
                                       worker_time = thread_time();
                                     });
                                   },
                               .on_task_error = common::give_up,
                               .slow_task = metrics_port ? tick : std::chrono::nanoseconds(0),
                               .on_slow_task = [](const hwt::Timeout&, std::chrono::nanoseconds) {},
                               .trace_origins = metrics_port.has_value()});
  std::optional<Metrics> metrics;
  if (metrics_port) metrics.emplace(timer, *metrics_port);
  Server server({never_answer, seed, median_ms, sigma, std::move(replayed)},
                [&client](const std::string& what) { client.fail(what); });
  server.start();
  client.connect(server.port());

  const auto started = std::chrono::steady_clock::now();
  const Results results = client.run(timer);
  server.stop();
  timer.stop();
  const auto took = std::chrono::steady_clock::now() - started;

  report(load, tick, results, worker_time ? common::percent_of(worker_time->count(), took.count()) : "unknown",
         timer.stats());
  picture.draw(common::counted(results.requests, "request") + ", each with a timeout on one wheel timer",
               conditions(load, tick, results) + "; " + text_of(results.answered) + " answered, " +
                   text_of(results.timed_out) + " timed out",
               {latency_panel(load, results), lateness_panel(tick, results)});
  common::print("\nPicture: " + svg + '\n');
  return results.lost == 0 && results.doubled == 0 && results.early == 0;
}

}  // namespace
}  // namespace rpc

int main(int argc, char** argv) {
  return common::run_example(
      argc, argv,
      {"rpc_timeouts",
       "An RPC server and client over TCP. Each request has a timeout on one shared hwt::HashedWheelTimer: the answer\n"
       "cancels it, and expiry completes the request. Ends with a report and a picture of latency and lateness.",
       "a request was lost, completed twice or timed out early"},
      rpc::run);
}
