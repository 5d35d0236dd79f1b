#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/manual_timer.h"
#include "interrupt.h"
#include "runs.h"
#include "stopwatch.h"

namespace pool {
namespace {

// Moments per heartbeat interval, each with its share of the connections. 5 s / 64 is no multiple of a tick: heartbeats
// come at all phases of the wheel.
constexpr std::uint64_t kMoments = 64;

}  // namespace

Times simulated_times(const Options& options) {
  const std::chrono::duration<double, std::ratio<60>> duration(options.minutes);
  return {.heartbeat = std::chrono::seconds(5),
          .expiry = std::chrono::seconds(30),
          .tick = options.tick,
          .duration = std::chrono::duration_cast<std::chrono::nanoseconds>(duration)};
}

Results run_simulated(const Options& options) {
  const Times times = simulated_times(options);
  const std::chrono::nanoseconds step = times.heartbeat / kMoments;
  hwt::ManualTimer timer(times.tick);
  ConnectionPool pool(timer, options.connections, times, Script(options.silent, options.seed, times));
  const auto threads = static_cast<std::uint64_t>(options.threads);

  // Written in the barrier alone, when no thread is at work.
  std::uint64_t moment = 0;
  bool running = true;
  std::atomic<bool> threads_missing{false};
  std::barrier all_sent(options.threads, [&]() noexcept {
    timer.advance(step);
    ++moment;
    running = timer.now().time_since_epoch() < times.duration && !interrupted() && !threads_missing.load();
  });

  std::atomic<std::int64_t> heartbeats{0};
  const auto send = [&](std::uint64_t thread) {
    std::int64_t sent = 0;
    while (running) {
      // Connections of this moment: kMoments apart; of these, one for each thread in turn.
      for (std::uint64_t id = moment % kMoments + thread * kMoments; id < pool.size(); id += threads * kMoments) {
        sent += pool.follow_script(id, moment / kMoments);
      }
      all_sent.arrive_and_wait();
    }
    heartbeats += sent;
  };
  for (std::uint64_t id = 0; id < pool.size(); ++id) pool.connect(id);
  const Stopwatch stopwatch;
  {
    std::vector<std::jthread> senders;
    try {
      for (std::uint64_t thread = 0; thread < threads; ++thread) senders.emplace_back(send, thread);
    } catch (...) {
      // Those that are there would wait at the barrier for the others for ever.
      threads_missing = true;
      for (std::uint64_t thread = senders.size(); thread < threads; ++thread) all_sent.arrive_and_drop();
      throw;
    }
  }
  const Stopwatch::Elapsed elapsed = stopwatch.elapsed();
  Results results = pool.close();
  results.heartbeats = heartbeats;
  results.simulated = timer.now().time_since_epoch();
  results.wall = elapsed.wall;
  results.cpu = elapsed.cpu;
  return results;
}

}  // namespace pool
