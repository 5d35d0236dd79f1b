#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "interrupt.h"
#include "runs.h"
#include "stopwatch.h"

namespace pool {
namespace {

constexpr std::int64_t kMostConnections = 100'000;
constexpr int kFaster = 20;
constexpr std::uint64_t kMoments = 50;       // per heartbeat interval: at each a thread wakes up
constexpr std::chrono::seconds kLatest(10);  // how late an expiry is believed to come

}  // namespace

Times live_times(const Options& options) {
  const Times slow = simulated_times(options);
  return {.heartbeat = slow.heartbeat / kFaster,
          .expiry = slow.expiry / kFaster,
          .tick = std::chrono::milliseconds(10),
          .duration = std::chrono::duration_cast<std::chrono::nanoseconds>(
              std::chrono::duration<double>(options.live_seconds))};
}

Results run_live(const Options& options) {
  using Clock = std::chrono::steady_clock;
  const Times times = live_times(options);
  hwt::HashedWheelTimer timer(times.tick);
  ConnectionPool pool(timer, std::min(options.connections, kMostConnections), times,
                      Script(options.silent, options.seed, times));
  const auto threads = static_cast<std::uint64_t>(options.threads);
  std::atomic<std::int64_t> heartbeats{0};
  for (std::uint64_t id = 0; id < pool.size(); ++id) pool.connect(id);
  const Stopwatch stopwatch;
  const Clock::time_point start = Clock::now();
  const auto send = [&](std::uint64_t thread) {
    std::int64_t sent = 0;
    for (std::uint64_t moment = 0;; ++moment) {
      const Clock::time_point next = start + moment * times.heartbeat / kMoments;
      if (next - start >= times.duration || interrupted()) break;
      std::this_thread::sleep_until(next);
      for (std::uint64_t id = moment % kMoments + thread * kMoments; id < pool.size(); id += threads * kMoments) {
        sent += pool.follow_script(id, moment / kMoments);
      }
    }
    heartbeats += sent;
  };
  {
    std::vector<std::jthread> senders;
    for (std::uint64_t thread = 0; thread < threads; ++thread) senders.emplace_back(send, thread);
  }
  const Stopwatch::Elapsed elapsed = stopwatch.elapsed();
  // A busy machine makes an expiry late, but it comes. One that does not is lost, for which there is no excuse.
  const std::chrono::nanoseconds end = pool.now();
  const Clock::time_point give_up = Clock::now() + kLatest;
  std::int64_t overdue = 0;
  while ((overdue = pool.overdue_since(end)) > 0 && Clock::now() < give_up && !interrupted()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  Results results = pool.close();
  if (Clock::now() >= give_up) results.lost += overdue;
  results.heartbeats = heartbeats;
  results.wall = elapsed.wall;
  results.cpu = elapsed.cpu;
  return results;
}

}  // namespace pool
