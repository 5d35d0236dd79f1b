// One epoll loop drives a LoopTimer for several threads. The loop in loop.h sleeps until a timeout is due. An eventfd
// wakes it if another thread schedules an earlier one. The guide shows libuv and libevent.

#include <thread>

#include "common/common.h"
#include "common/histogram.h"
#include "loop.h"

namespace epoll_loop {
namespace {

using common::text_of;

struct Settings {
  std::uint64_t threads = 2;
  std::chrono::milliseconds tick{1};
  std::chrono::milliseconds limit{50};
  double unanswered = 0.01;  // share of the requests
  std::chrono::milliseconds duration{2000};
};

/// Counters of one thread that sends.
struct Sent {
  std::int64_t requests = 0;
  std::int64_t answered = 0;
};
/// Counters of the loop.
struct TimedOut {
  std::int64_t requests = 0;
  std::int64_t early = 0;
  common::Histogram late;
};

/// Sends requests, each with a timeout, and keeps some in flight. Most are answered.
Sent send_requests(const Settings& settings, hwt::Timer& timer, TimedOut& timed_out) {
  constexpr std::size_t kInFlight = 100;
  constexpr std::int64_t kBurst = 100;
  Sent sent;
  std::vector<hwt::Timeout> in_flight(kInFlight);
  const auto every = static_cast<std::int64_t>(settings.unanswered > 0 ? 1 / settings.unanswered : 0);
  const auto end = Loop::Clock::now() + settings.duration;
  while (Loop::Clock::now() < end && !common::interrupted()) {
    for (std::int64_t i = 0; i < kBurst; ++i) {
      hwt::Timeout& request = in_flight[static_cast<std::size_t>(sent.requests) % kInFlight];
      if (request && (every == 0 || sent.requests % every != 0) && request.cancel()) ++sent.answered;
      const auto deadline = Loop::Clock::now() + settings.limit;
      request = timer.new_timeout(
          [&timed_out, deadline] {
            const auto late = Loop::Clock::now() - deadline;
            ++timed_out.requests;
            if (late < late.zero()) ++timed_out.early;
            timed_out.late.record(late);
          },
          settings.limit);
      ++sent.requests;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (hwt::Timeout& request : in_flight) {
    if (request.cancel()) ++sent.answered;
  }
  return sent;
}

/// Starts a thread that does `work`. An exception ends the program.
std::jthread thread_of(auto work) {
  return std::jthread([work] {
    try {
      work();
    } catch (...) {
      common::give_up(std::current_exception(), {});
    }
  });
}

bool report(const Settings& settings, const Sent& sent, const TimedOut& timed_out, std::int64_t open, Loop& loop) {
  const hwt::TimerStats stats = loop.timer().stats();
  const std::int64_t lost = sent.requests - sent.answered - timed_out.requests - open;
  common::Report report(common::counted(settings.threads, "thread") + " and one loop; limit " +
                        text_of(settings.limit) + ", tick " + text_of(settings.tick) + ", for " +
                        text_of(settings.duration));
  report.section("Requests");
  report.line("sent", sent.requests);
  report.line("answered", sent.answered, "their timeouts were cancelled");
  report.line("timed out", timed_out.requests);
  report.line("open at the end", open);
  report.line("early", timed_out.early, "must be 0");
  report.line("lost", lost, "none of these, or several; must be 0");
  report.section("Timed out after the limit by");
  report.line("median", timed_out.late.quantile(0.5));
  report.line("99 %", timed_out.late.quantile(0.99));
  report.section("Loop");
  report.line("turns", stats.wakeups);
  report.line("woken", loop.called(), "times, by a thread that scheduled an earlier timeout or ended the loop");
  common::print(report.text());
  return timed_out.early == 0 && lost == 0;
}

bool run(common::Options& options) {
  Settings settings;
  options.number("--threads", settings.threads, {1, 64}, "Threads that send requests");
  options.number("--tick-ms", settings.tick, {1, 10'000}, "Tick of the timer; timeouts are late by up to one");
  options.number("--limit-ms", settings.limit, {1, 3'600'000}, "Timeout of a request");
  options.percentage("--unanswered", settings.unanswered, "Share of the requests that are not answered");
  options.number("--run-ms", settings.duration, {1, 86'400'000}, "Duration of the run");
  options.parse();

  TimedOut timed_out;  // only the thread of the loop uses it, until that has ended
  Loop loop(settings.tick);
  std::jthread runs = thread_of([&] { loop.run(); });
  std::vector<Sent> sent(settings.threads);
  {
    std::vector<std::jthread> threads;
    try {
      for (Sent& one : sent) {
        threads.push_back(thread_of([&] { one = send_requests(settings, loop.timer(), timed_out); }));
      }
    } catch (...) {
      loop.end();
      throw;
    }
    const auto end = Loop::Clock::now() + settings.duration;
    while (Loop::Clock::now() < end && !common::interrupted()) {
      std::this_thread::sleep_for(std::min<Loop::Clock::duration>(common::kLook, end - Loop::Clock::now()));
      common::show_progress([&] { return common::in_seconds(end - Loop::Clock::now()) + " to go"; });
    }
  }
  loop.end();
  runs.join();
  const auto open = static_cast<std::int64_t>(loop.timer().stop().size());
  Sent all;
  for (const Sent& one : sent) {
    all.requests += one.requests;
    all.answered += one.answered;
  }
  return report(settings, all, timed_out, open, loop);
}

}  // namespace
}  // namespace epoll_loop

int main(int argc, char** argv) {
  return common::run_example(
      argc, argv,
      {"epoll_loop",
       "Several threads send requests, each with a timeout on one hwt::LoopTimer. An epoll loop drives the timer. It\n"
       "sleeps until a timeout is due. An eventfd wakes it if a thread schedules an earlier one.",
       "a request timed out early, was lost, or ended twice"},
      epoll_loop::run);
}
