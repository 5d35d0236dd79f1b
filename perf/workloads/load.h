#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <future>
#include <latch>
#include <numeric>
#include <thread>
#include <vector>

#include "perf/random.h"
#include "perf/workloads/crowd.h"
#include "perf/workloads/late.h"
#include "perf/workloads/rings.h"

namespace hwt::perf {

/// Measures the CPU time of the thread that runs the tasks. The first task reports the CPU clock of this thread.
template <class Timer>
class WorkerTime {
 public:
  explicit WorkerTime(Timer& timer) {
    timer.launch(*this, 0, std::chrono::milliseconds(0));
    clock_ = told_.get_future().get();
  }

  void expired(std::uint64_t) noexcept {
    clockid_t clock{};
    pthread_getcpuclockid(pthread_self(), &clock);
    told_.set_value(clock);
  }

  std::chrono::nanoseconds now() const {
    timespec time{};
    clock_gettime(clock_, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

  /// Waits until the thread has used little CPU time for 100 ms. Returns its CPU time before that.
  std::chrono::nanoseconds when_quiet(std::chrono::nanoseconds little_in_a_while) const {
    for (auto last = now();;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      const auto spent = now() - last;
      if (spent < little_in_a_while) return last;
      last += spent;
    }
  }

 private:
  std::promise<clockid_t> told_;
  clockid_t clock_{};
};

/// Timeouts of a bystander: each of 1 ms schedules the next one. Measures their lateness.
template <class Timer>
class Bystander {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Bystander(Timer& timer) : timer_(timer) { next(); }

  void expired(std::uint64_t) noexcept {
    late_us_.push_back(std::chrono::duration<double, std::micro>(Clock::now() - deadline_).count());
    stopping_.load(std::memory_order_relaxed) ? stopped_.count_down() : next();
  }

  Json stop() {
    stopping_.store(true, std::memory_order_relaxed);
    stopped_.wait();
    std::sort(late_us_.begin(), late_us_.end());
    const auto quantile = [&](std::size_t permille) { return late_us_[permille * (late_us_.size() - 1) / 1000]; };
    return {{"late_p50_us", quantile(500)}, {"late_p99_us", quantile(990)}, {"late_max_us", quantile(1000)}};
  }

 private:
  void next() {
    deadline_ = Clock::now() + std::chrono::milliseconds(1);
    timer_.launch(*this, 0, std::chrono::milliseconds(1));
  }

  Timer& timer_;
  Clock::time_point deadline_;
  std::vector<double> late_us_;
  std::atomic<bool> stopping_{false};
  std::latch stopped_{1};
};

/// Holds the worker in a task until it is released. Then the worker finds all changes at once.
struct Hold {
  void expired(std::uint64_t) noexcept {
    begun.count_down();
    end.wait();
  }

  std::latch begun{1};
  std::latch end{1};
};

/// Many threads use the timer once and stay alive, or end (`ended`). Then one thread schedules 1,000 timeouts a second.
template <class Timer>
Json measure_crowd(const Options& options, bool ended) {
  using Clock = std::chrono::steady_clock;
  using std::chrono::milliseconds;
  Fired fired;
  Lateness lateness(options.seconds.count() * 1000);
  Timer timer(options.tick());
  const WorkerTime<Timer> worker(timer);
  std::vector<double> first_use_us;
  Crowd crowd([&] {
    auto slots = timer.make_slots(1);
    const auto begin = Clock::now();
    timer.schedule(slots[0], fired, 0, kLongDelay);
    first_use_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    timer.cancel(slots[0]);
  });
  for (std::int64_t i = 0; i < options.pending; ++i) crowd.add_thread();
  if (ended) crowd.let_go();

  const auto begin = Clock::now();
  const auto spent_before = worker.now();
  Random random(options.seed);
  std::uint64_t id = 0;
  run_every(timer, milliseconds(1), [&] {
    const std::chrono::microseconds delay(random.between(1'000, 21'000));
    lateness.expect(id, Clock::now() + delay);
    timer.launch(lateness, id, delay);
    return ++id < static_cast<std::uint64_t>(options.seconds.count()) * 1000;
  });
  const Json late = lateness.wait_for_figures();
  const std::chrono::duration<double> spent = worker.now() - spent_before;
  const std::chrono::duration<double> wall = Clock::now() - begin;
  timer.stop();
  crowd.let_go();
  std::sort(first_use_us.begin(), first_use_us.end());
  return {{"worker_cpu_percent", 100 * (spent / wall)},
          {"late_p50_us", late["late_us"][500]},
          {"late_p99_us", late["late_us"][990]},
          {"late_max_us", late["late_us"][1000]},
          {"first_use_p50_us", first_use_us[first_use_us.size() / 2]},
          {"first_use_max_us", first_use_us.back()}};
}

/// Cancels all timeouts in the wheel while a task holds the worker. Then measures a bystander's timeouts.
template <class Timer>
Json measure_mass_cancel(const Options& options, bool at_random) {
  Fired fired;
  Timer timer(options.tick());
  const WorkerTime<Timer> worker(timer);
  const auto size = static_cast<std::size_t>(options.pending);
  auto slots = timer.make_slots(size);
  for (std::size_t i = 0; i < size; ++i) timer.schedule(slots[i], fired, i, kLongDelay);
  timer.take_over();
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0U);
  Random random(options.seed);
  for (std::size_t i = size; at_random && i > 1; --i) std::swap(order[i - 1], order[random.next() % i]);

  Hold hold;
  timer.launch(hold, 0, std::chrono::milliseconds(0));
  hold.begun.wait();
  const auto spent_before = worker.now();
  const auto begin = std::chrono::steady_clock::now();
  for (const std::uint32_t i : order) timer.cancel(slots[i]);
  const std::chrono::duration<double, std::milli> cancelling = std::chrono::steady_clock::now() - begin;
  Bystander bystander(timer);
  hold.end.count_down();
  const auto spent = worker.when_quiet(std::chrono::milliseconds(10)) - spent_before;
  Json figures = {{"cancelling_ms", cancelling.count()},
                  {"worker_ns_per_cancel", static_cast<double>(spent.count()) / static_cast<double>(size)}};
  figures.update(bystander.stop());
  timer.stop();
  return figures;
}

template <class Timer>
Json measure_load(const Options& options) {
  if (options.load == "mass-cancel") return measure_mass_cancel<Timer>(options, false);
  if (options.load == "random-cancel") return measure_mass_cancel<Timer>(options, true);
  return measure_crowd<Timer>(options, options.load == "ended");
}

}  // namespace hwt::perf
