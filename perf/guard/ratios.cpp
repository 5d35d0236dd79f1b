#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/loop_timer.h"
#include "perf/guard/measured.h"
#include "perf/micro/floor_pair.h"
#include "perf/micro/threadless_timer.h"
#include "perf/random.h"

namespace hwt::perf {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kRing = 1000;
constexpr std::size_t kPairs = 200'000;  // per slice: some ten milliseconds, shorter than most interruptions
constexpr std::size_t kSlices = 60;
constexpr std::size_t kKept = 15;  // the least interrupted quarter

struct Slice {
  double cpu_time;  // of the process, in seconds
  double parallel;  // CPU time / wall time: the number of threads, if none was interrupted
};

Slice slice_of(auto&& work) {
  const auto begin = std::chrono::steady_clock::now();
  const std::clock_t cpu_begin = std::clock();
  work();
  const double cpu = static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC;
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  return {cpu, cpu / passed.count()};
}

/// Runs slices of both in turn and returns the median ratio of the least interrupted slices. An interrupted slice does
/// not show contention, because its threads do not run at the same time.
double ratio(auto&& measured, auto&& reference) {
  struct Pair {
    double ratio;
    double parallel;
  };
  measured();
  reference();
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < kSlices; ++i) {
    const Slice slice = measured();
    pairs.push_back({slice.cpu_time / reference().cpu_time, slice.parallel});
  }
  std::ranges::sort(pairs, std::ranges::greater(), &Pair::parallel);
  pairs.resize(kKept);
  std::ranges::sort(pairs, {}, &Pair::ratio);
  return pairs[kKept / 2].ratio;
}

/// The whole timer: threads cancel the oldest of a ring and schedule a new timeout, kPairs in all, by delay or by
/// deadline. The measurement includes the worker's work.
class Churn {
 public:
  Slice slice(std::size_t threads) {
    return slice_with(threads, [this](auto task) { return timer_.new_timeout(task, 600s); });
  }
  Slice slice_by_deadline() {
    return slice_with(1, [this, deadline = timer_.now() + 600s](auto task) mutable {
      return timer_.new_timeout(task, deadline += 50ns);
    });
  }

 private:
  Slice slice_with(std::size_t threads, auto schedule) {
    Slice slice = slice_of([&] {
      std::vector<std::thread> running;
      for (std::size_t i = 0; i < threads; ++i) {
        running.emplace_back([this, threads, schedule] { churn(kPairs / threads, schedule); });
      }
      for (std::thread& thread : running) thread.join();
    });
    // The worker catches up meanwhile.
    slice.cpu_time += slice_of([] { std::this_thread::sleep_for(3ms); }).cpu_time;
    return slice;
  }

  void churn(std::size_t pairs, auto schedule) {
    std::vector<Timeout> ring(kRing);
    for (std::size_t i = 0; i < pairs; ++i) {
      Timeout& oldest = ring[i % kRing];
      oldest.cancel();
      oldest = schedule([this, i] { ran_ = i; });
    }
    for (Timeout& timeout : ring) timeout.cancel();
  }

  std::size_t ran_ = 0;
  HashedWheelTimer timer_{1ms};
};

/// Churn in the thread of an event loop, which asks for due tasks after each batch of requests.
class LoopChurn {
 public:
  Slice operator()() {
    return slice_of([this] {
      for (std::size_t i = 0; i < kPairs; ++i) {
        Timeout& oldest = ring_[i % kRing];
        oldest.cancel();
        oldest = timer_.new_timeout([this, i] { ran_ = i; }, 600s);
        if (i % 1000 == 0) timer_.run_due();
      }
    });
  }

 private:
  std::size_t ran_ = 0;
  LoopTimer timer_{{.tick_duration = 1ms}};
  std::vector<Timeout> ring_{kRing};
};

/// Churn without a worker: collect() does its work in between.
class ThreadlessChurn {
 public:
  Slice operator()() {
    return slice_of([this] {
      for (std::size_t i = 0; i < kPairs; ++i) {
        timer_.set_time(internal::steady_now());
        Timeout& oldest = ring_[i % kRing];
        oldest.cancel();
        oldest = timer_.new_timeout([this, i] { ran_ = i; }, 600s);
        // Most of the timeouts are cancelled by now.
        if (i % 20'000 == 0) collect();
      }
      collect();
    });
  }

 private:
  void collect() { timer_.worker().transfer(); }

  std::size_t ran_ = 0;
  ThreadlessTimer timer_;
  std::vector<Timeout> ring_{kRing};
};

Slice slice_of_floor(FloorPair& floor, auto pair) {
  return slice_of([&] {
    for (std::size_t i = 0; i < kPairs; ++i) {
      pair(i);
      if (i % FloorPair::kBatch == 0) floor.drain();
    }
  });
}

/// Timeouts at random times that enter the wheel and expire. In a large batch most nodes leave the near caches before
/// they expire, in small batches they stay.
class Expiry {
 public:
  explicit Expiry(std::size_t batch) : delays_(batch) {
    Random random(1);
    // The number for each tick does not depend on the batch.
    const auto ticks = static_cast<std::int64_t>(batch / 200);
    for (auto& delay : delays_) delay = std::chrono::milliseconds(random.between(1, ticks));
  }

  Slice operator()() {
    Slice sum{0, 1};
    for (std::size_t done = 0; done < kMany; done += delays_.size()) {
      timer_.set_time(timer_.time() + std::chrono::nanoseconds(1s).count());
      for (const auto delay : delays_) timer_.new_timeout([this] { ++ran_; }, delay);
      const Slice slice = slice_of([this] {
        timer_.transfer_all();
        timer_.expire_all();
      });
      sum.cpu_time += slice.cpu_time;
      sum.parallel = std::min(sum.parallel, slice.parallel);
    }
    return sum;
  }

  static constexpr std::size_t kFew = 2'000;
  static constexpr std::size_t kMany = 100'000;  // nodes: more than the second-level cache holds

 private:
  std::vector<std::chrono::milliseconds> delays_;
  std::int64_t ran_ = 0;
  ThreadlessTimer timer_;
};

}  // namespace

std::map<std::string, double> measure_ratios() {
  Churn churn;
  FloorPair floor;
  const auto one_thread = [&] { return churn.slice(1); };
  const auto two_threads = [&] { return churn.slice(2); };
  const auto by_deadline = [&] { return churn.slice_by_deadline(); };
  const auto floor_pair = [&] { return slice_of_floor(floor, [&](std::size_t) { floor.pair(); }); };
  const auto floor_pair_at = [&] {
    return slice_of_floor(floor, [&](std::size_t i) { floor.pair_at(static_cast<std::int64_t>(i)); });
  };
  return {
      {"churn_2_threads / churn_1_thread", ratio(two_threads, one_thread)},
      {"churn_1_thread / floor_pair", ratio(one_thread, floor_pair)},
      {"churn_by_deadline / churn_1_thread", ratio(by_deadline, one_thread)},
      {"churn_by_deadline / floor_pair_at", ratio(by_deadline, floor_pair_at)},
      {"churn_in_a_loop / churn_1_thread", ratio(LoopChurn(), one_thread)},
      {"churn_without_worker / floor_pair", ratio(ThreadlessChurn(), floor_pair)},
      {"expire_100000_at_once / in_batches_of_2000", ratio(Expiry(Expiry::kMany), Expiry(Expiry::kFew))},
  };
}

}  // namespace hwt::perf
