// A million connections in a hwt::KeyedTimer. Every heartbeat moves a deadline.
//
// In pool.h, connect() sets, heartbeat() moves, and expire() runs after the last heartbeat.

#include <atomic>
#include <barrier>
#include <ctime>

#include "common/common.h"
#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "pool.h"

namespace pool {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using common::text_of;

struct Settings {
  std::size_t connections = 1'000'000;
  std::uint64_t threads = 2;
  double minutes = 2;  // of simulated time
  std::chrono::milliseconds tick{100};
  double silent = 0.01;  // share of the connections
  double live_seconds = 4;
  std::uint64_t seed = 1;
};

/// Runs `send` on `count` threads and returns the sum of the heartbeats that they sent. If a thread cannot start, calls
/// `missing` with the number of threads that are missing.
template <class Send, class Missing>
std::int64_t on_threads(std::uint64_t count, const Send& send, const Missing& missing) {
  std::atomic<std::int64_t> heartbeats{0};
  std::vector<std::jthread> threads;
  threads.reserve(count);
  try {
    while (threads.size() < count) {
      threads.emplace_back([&heartbeats, &send, number = threads.size()] { heartbeats += send(number); });
    }
  } catch (...) {
    missing(count - threads.size());
    throw;
  }
  for (std::jthread& thread : threads) thread.join();
  return heartbeats;
}

/// Returns the CPU time of the process.
std::chrono::duration<double> processor_time() {
  return std::chrono::duration<double>(static_cast<double>(std::clock()) / CLOCKS_PER_SEC);
}

/// Prints the results. Returns true if the timer kept its promises. On the real clock a busy machine may delay expiries
/// and heartbeats.
bool report(const std::string& title, const Settings& settings, const Times& times, const Results& results,
            bool simulated, std::chrono::duration<double> took, std::chrono::duration<double> processor) {
  common::Report report(title);
  report.line("pool", settings.connections,
              "connections, heartbeat every " + text_of(times.heartbeat) + ", expiry after " + text_of(times.expiry) +
                  ", tick " + text_of(times.tick));
  report.line("time", took, simulated ? "for " + text_of(times.duration) + " of simulated time" : "");
  report.line("heartbeats", results.heartbeats);
  if (results.heartbeats != 0) {
    const auto heartbeats = static_cast<double>(results.heartbeats);
    report.line("", std::llround(heartbeats / std::max(took.count(), 1e-9)), "per second");
    report.line("", processor / heartbeats, "of CPU time each, all included");
  }
  report.line("expired", results.expired);
  if (results.expired != 0) {
    report.line("", results.earliest, "after the last heartbeat, the earliest");
    report.line("", results.latest, "after the last heartbeat, the latest");
  }
  report.line("connected", results.connected);
  const std::string excuse = simulated ? "must be 0" : "must be 0, unless the machine was busy";
  report.line("early", results.early, "must be 0");
  report.line("late", results.late, excuse);
  report.line("overdue", results.overdue, excuse);
  report.line("wrong", results.wrong, excuse);
  report.line("lost", results.lost, "must be 0");
  common::print(report.text());
  const bool exact = results.late == 0 && results.overdue == 0 && results.wrong == 0;
  return results.early == 0 && results.lost == 0 && (exact || !simulated);
}

/// Runs on a ManualTimer that advances as soon as all heartbeats of a moment have been sent.
bool run_simulated(const Settings& settings, Times times) {
  // At each moment a share of the connections sends. 5 s / 64 is no multiple of a tick, so heartbeats come at all
  // phases of the wheel.
  constexpr std::uint64_t kMoments = 64;
  hwt::ManualTimer timer(times.tick, {}, common::give_up);
  ConnectionPool pool(timer, settings.connections, times, Script(settings.silent, settings.seed, times));

  // Written only by the completion function of the barrier.
  std::uint64_t moment = 0;
  bool running = true;
  std::atomic<bool> threads_missing{false};
  std::barrier all_sent(static_cast<std::ptrdiff_t>(settings.threads), [&]() noexcept {
    timer.advance(times.heartbeat / kMoments);
    ++moment;
    running = pool.now() < times.duration && !common::interrupted() && !threads_missing.load();
    common::show_progress([&] {
      return "simulated time " + text_of(std::chrono::floor<std::chrono::seconds>(pool.now())) + " of " +
             text_of(times.duration);
    });
  });

  const Clock::time_point start = Clock::now();
  const auto processor_start = processor_time();
  const std::int64_t heartbeats = on_threads(
      settings.threads,
      [&](std::uint64_t thread) {
        std::int64_t sent = 0;
        while (running) {
          // The connections of this moment are kMoments apart. The threads take them in turn.
          for (std::uint64_t id = moment % kMoments + thread * kMoments; id < pool.size();
               id += settings.threads * kMoments) {
            sent += pool.follow_script(id, moment / kMoments);
          }
          all_sent.arrive_and_wait();
        }
        return sent;
      },
      [&](std::uint64_t missing) {
        // Otherwise the other threads would wait at the barrier for ever.
        threads_missing = true;
        while (missing-- > 0) all_sent.arrive_and_drop();
      });
  const auto took = Clock::now() - start;
  const auto processor = processor_time() - processor_start;
  times.duration = pool.now();
  Results results = pool.close();
  results.heartbeats = heartbeats;
  return report("Simulated time, hwt::ManualTimer", settings, times, results, true, took, processor);
}

/// Runs on a HashedWheelTimer and the real clock.
bool run_live(const Settings& settings, const Times& times) {
  constexpr std::uint64_t kMoments = 50;  // per heartbeat interval
  constexpr auto kLatest = 10s;           // an expiry later than this counts as lost
  hwt::HashedWheelTimer timer({.tick_duration = times.tick, .on_task_error = common::give_up});
  ConnectionPool pool(timer, settings.connections, times, Script(settings.silent, settings.seed, times));

  std::atomic<bool> threads_missing{false};
  const Clock::time_point start = Clock::now();
  const auto processor_start = processor_time();
  const std::int64_t heartbeats = on_threads(
      settings.threads,
      [&](std::uint64_t thread) {
        std::int64_t sent = 0;
        for (std::uint64_t moment = 0;; ++moment) {
          const Clock::time_point next = start + moment * times.heartbeat / kMoments;
          if (next - start >= times.duration || common::interrupted() || threads_missing) return sent;
          common::show_progress(
              [&] { return "real time " + common::in_seconds(next - start) + " of " + text_of(times.duration); });
          std::this_thread::sleep_until(next);
          for (std::uint64_t id = moment % kMoments + thread * kMoments; id < pool.size();
               id += settings.threads * kMoments) {
            sent += pool.follow_script(id, moment / kMoments);
          }
        }
      },
      [&](std::uint64_t) { threads_missing = true; });
  const auto took = Clock::now() - start;
  const auto processor = processor_time() - processor_start;

  // On a busy machine an expiry may be late, but it must not be missing.
  const std::chrono::nanoseconds end = pool.now();
  const Clock::time_point give_up = Clock::now() + kLatest;
  std::int64_t overdue = 0;
  while ((overdue = pool.overdue_since(end)) > 0 && Clock::now() < give_up && !common::interrupted()) {
    std::this_thread::sleep_for(10ms);
  }
  timer.stop();  // waits for a running expiry, which close() would count as lost until it has counted itself
  Results results = pool.close();
  if (Clock::now() >= give_up) results.lost += overdue;
  results.heartbeats = heartbeats;
  return report("Real clock, hwt::HashedWheelTimer", settings, times, results, false, took, processor);
}

bool run(common::Options& options) {
  constexpr std::size_t kMostLive = 100'000;
  constexpr int kFaster = 20;
  Settings settings;
  options.number("--connections", settings.connections, {1, 10'000'000},
                 "Connections in the pool; at most 100,000 on the real clock");
  options.number("--threads", settings.threads, {1, 64}, "Threads that send heartbeats");
  options.number("--minutes", settings.minutes, {0.1, 1440}, "Simulated time");
  options.number("--tick-ms", settings.tick, {1, 10'000},
                 "Tick in simulated time; connections expire late by up to one");
  options.percentage("--silent", settings.silent, "Share of the connections that go silent");
  options.number("--live-seconds", settings.live_seconds, {0, 3600}, "Duration on the real clock; 0: skip it");
  options.number("--seed", settings.seed, {0, 0x1p53}, "Seed of the random silences");
  options.parse();

  const auto nanoseconds = [](auto duration) { return std::chrono::duration_cast<std::chrono::nanoseconds>(duration); };
  const Times slow{.heartbeat = 5s,
                   .expiry = 30s,
                   .tick = settings.tick,
                   .duration = nanoseconds(std::chrono::duration<double, std::ratio<60>>(settings.minutes))};
  bool good = run_simulated(settings, slow);
  if (settings.live_seconds == 0 || common::interrupted()) return good;
  common::print("\n");
  settings.connections = std::min(settings.connections, kMostLive);
  const Times fast{.heartbeat = slow.heartbeat / kFaster,
                   .expiry = slow.expiry / kFaster,
                   .tick = 10ms,
                   .duration = nanoseconds(std::chrono::duration<double>(settings.live_seconds))};
  return run_live(settings, fast) && good;
}

}  // namespace
}  // namespace pool

int main(int argc, char** argv) {
  return common::run_example(
      argc, argv,
      {"keep_alive_pool",
       "A pool of connections that send a heartbeat every 5 s and expire 30 s after the last one, on one\n"
       "hwt::KeyedTimer that several threads use. First in simulated time, then for some seconds on the real clock,\n"
       "with all times divided by twenty. A share of the connections goes silent.",
       "a connection expired early or never, or late in simulated time"},
      pool::run);
}
