// A request goes over three servers, and the rest of its time budget goes with it. In hop.h a server reads the budget,
// does not start work for a budget that is used up, and passes on the rest.

#include "common/common.h"
#include "hop.h"
#include "ledger.h"

namespace three_hops {
namespace {

using common::text_of;

/// Sends one request after the other.
asio::awaitable<void> call(World& world, tcp::endpoint first, std::function<void()> ended) {
  Link link(world, std::move(first));
  const hwt::Deadline end = hwt::Deadline::in(world.settings.duration, world.timer.now());
  while (!end.expired(world.timer.now()) && !common::interrupted()) {
    const hwt::Deadline deadline = hwt::Deadline::in(world.settings.budget, world.timer.now());
    const bool in_time = co_await link.call(world.ledger.begin(deadline), deadline);
    ++(in_time ? world.ledger.answered : world.ledger.timed_out);
  }
  ended();
}

/// Shows the progress until the callers have ended.
asio::awaitable<void> watch(World& world, const std::uint64_t& callers) {
  while (callers != 0) {
    co_await hwt::net::async_wait(world.timer, world.loop.get_executor(), common::kLook, asio::use_awaitable);
    common::show_progress([&] { return common::counted(world.ledger.requests(), "request"); });
  }
}

bool report(const World& world) {
  const Settings& settings = world.settings;
  const Ledger& ledger = world.ledger;
  common::Report report(common::counted(settings.callers, "caller") + ", budget " + text_of(settings.budget) + "; " +
                        common::counted(kHops, "hop") + " with " + common::counted(settings.workers, "worker") +
                        " each, work " + text_of(settings.work) + "; tick " + text_of(settings.tick));
  report.section("Requests");
  report.line("sent", ledger.requests());
  report.line("answered", ledger.answered);
  report.line("timed out", ledger.timed_out);
  report.section("Hops");
  std::vector<std::vector<std::string>> table = {
      {"  hop", "requests", "budget left", "started", "not started", "stopped"}};
  std::int64_t not_started = 0;
  bool complete = ledger.answered + ledger.timed_out == ledger.requests();
  for (std::size_t i = 0; i < kHops; ++i) {
    const Ledger::Hop& hop = ledger.hops[i];
    table.push_back({"  " + std::to_string(i + 1), text_of(hop.arrived), text_of(hop.left.quantile(0.5)),
                     text_of(hop.started), text_of(hop.not_started), text_of(hop.stopped)});
    not_started += hop.not_started;
    complete = complete && hop.arrived == hop.started + hop.not_started;
  }
  report.table(table);
  report.section("Work");
  report.line("not started", not_started, "because the budget was used up");
  report.line("time saved", ledger.saved(), "of the workers");
  if (ledger.latest_start() > Ledger::Clock::duration::min()) {
    report.line("latest start", ledger.latest_start(), "after the caller's deadline; mostly before it");
  }
  report.line("started too late", ledger.started_late(), "after the budget and the time on the way; must be 0");
  common::print(report.text());
  return complete && ledger.started_late() == 0;
}

bool run(common::Options& options) {
  Settings settings;
  options.number("--callers", settings.callers, {1, 1000}, "Callers; each has one request at a time");
  options.number("--workers", settings.workers, {1, 1000}, "Workers of each hop");
  options.number("--budget-ms", settings.budget, {1, 10'000}, "Time budget of a request");
  options.number("--work-ms", settings.work, {0, 10'000}, "Average work of each hop");
  options.number("--tick-ms", settings.tick, {1, 1000}, "Tick of the timer");
  options.number("--run-ms", settings.duration, {1, 86'400'000}, "Duration of the run");
  options.parse();

  World world(settings);
  Hop third(world, world.ledger.hops[2], {});
  Hop second(world, world.ledger.hops[1], third.endpoint());
  Hop first(world, world.ledger.hops[0], second.endpoint());
  std::uint64_t callers = settings.callers;
  const auto ended = [&] {
    if (--callers != 0) return;
    for (Hop* const hop : {&first, &second, &third}) hop->stop();
  };
  for (std::uint64_t i = 0; i < settings.callers; ++i) {
    asio::co_spawn(world.loop, call(world, first.endpoint(), ended), kRethrow);
  }
  asio::co_spawn(world.loop, watch(world, callers), kRethrow);
  world.loop.run();  // until all connections are closed
  return report(world);
}

}  // namespace
}  // namespace three_hops

int main(int argc, char** argv) {
  return common::run_example(
      argc, argv,
      {"three_hops",
       "A request goes over three servers, and the rest of its time budget goes with it. A server that has too few\n"
       "workers does not start work whose budget is used up.",
       "work started after its budget was used up, or a request was lost"},
      three_hops::run);
}
