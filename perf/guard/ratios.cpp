#include "perf/guard/ratios.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "perf/micro/floor_pair.h"
#include "perf/micro/random.h"
#include "perf/micro/threadless_timer.h"

namespace hwt::perf {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kRing = 1000;
constexpr std::size_t kPairs = 200'000;  // of a slice: some ten milliseconds, shorter than most interruptions
constexpr std::size_t kSlices = 60;
constexpr std::size_t kKept = 15;

/// CPU time of the process, in nanoseconds.
double cpu_time() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

struct Slice {
  double cpu_time;
  double parallel;  // CPU time by time that has passed: the number of threads, if none was interrupted
};

template <class Work>
Slice slice_of(Work&& work) {
  const auto begin = std::chrono::steady_clock::now();
  const double cpu_begin = cpu_time();
  work();
  const double cpu = cpu_time() - cpu_begin;
  const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - begin;
  return {cpu, cpu / passed.count()};
}

/// Each of the two does one slice. Only those slices count that were interrupted least: threads that do not run at the
/// same time cannot take anything from each other.
template <class Measured, class Reference>
double ratio(Measured&& measured, Reference&& reference) {
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
  std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.parallel > b.parallel; });
  pairs.resize(kKept);
  std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.ratio < b.ratio; });
  return pairs[kKept / 2].ratio;
}

/// The whole timer: threads that cancel the oldest of a ring and schedule a new one, kPairs in all. The worker catches
/// up before the time is taken.
class Churn {
 public:
  Slice slice(std::size_t threads) {
    Slice slice = slice_of([&] {
      std::vector<std::thread> running;
      for (std::size_t i = 0; i < threads; ++i) running.emplace_back([this, threads] { churn(kPairs / threads); });
      for (std::thread& thread : running) thread.join();
    });
    slice.cpu_time += slice_of([] { std::this_thread::sleep_for(3ms); }).cpu_time;
    return slice;
  }

 private:
  void churn(std::size_t pairs) {
    std::vector<Timeout> ring(kRing);
    for (std::size_t i = 0; i < pairs; ++i) {
      Timeout& oldest = ring[i % kRing];
      oldest.cancel();
      oldest = timer_.new_timeout([this, i] { ran_ = i; }, 600s);
    }
    for (Timeout& timeout : ring) timeout.cancel();
  }

  std::size_t ran_ = 0;
  HashedWheelTimer timer_{1ms};
};

/// The same without a worker: what it would do is done in between.
class ThreadlessChurn {
 public:
  Slice slice() {
    return slice_of([this] {
      for (std::size_t i = 0; i < kPairs; ++i) {
        timer_.set_time(internal::steady_now());
        Timeout& oldest = ring_[i % kRing];
        oldest.cancel();
        oldest = timer_.new_timeout([this, i] { ran_ = i; }, 600s);
        // When most of what it finds has been cancelled.
        if (i % 20'000 == 0) collect();
      }
      collect();
    });
  }

 private:
  void collect() {
    timer_.driver().collect_cancelled();
    timer_.driver().transfer(0);
  }

  std::size_t ran_ = 0;
  ThreadlessTimer timer_;
  std::vector<Timeout> ring_{kRing};
};

class Floor {
 public:
  Slice slice() {
    return slice_of([this] {
      for (std::size_t i = 0; i < kPairs; ++i) {
        floor_.pair();
        if (i % FloorPair::kBatch == 0) floor_.drain();
      }
    });
  }

 private:
  FloorPair floor_;
};

/// Timeouts at random times, put into the wheel and expired: many at once, of which most have left the near caches when
/// they expire, or as many in small batches.
class Expiry {
 public:
  explicit Expiry(std::size_t batch) : delays_(batch) {
    Random random(1);
    // As many in each tick, whatever the batch.
    const auto ticks = static_cast<std::int64_t>(batch / 200);
    for (auto& delay : delays_) delay = std::chrono::milliseconds(random.between(1, ticks));
  }

  Slice slice() {
    Slice sum{0, 1};
    for (std::size_t done = 0; done < kMany; done += delays_.size()) {
      timer_.set_time(timer_.time() + std::chrono::nanoseconds(1s).count());
      for (const auto delay : delays_) timer_.new_timeout([this] { ++ran_; }, delay);
      const Slice slice = slice_of([this] {
        while (timer_.driver().transfer(0).any) {
        }
        timer_.expire_all();
      });
      sum.cpu_time += slice.cpu_time;
      sum.parallel = std::min(sum.parallel, slice.parallel);
    }
    return sum;
  }

  static constexpr std::size_t kFew = 2'000;
  static constexpr std::size_t kMany = 100'000;  // nodes: more than fit into the second-level cache

 private:
  std::vector<std::chrono::milliseconds> delays_;
  std::int64_t ran_ = 0;
  ThreadlessTimer timer_;
};

}  // namespace

std::map<std::string, double> measure_ratios() {
  const auto churn = std::make_unique<Churn>();
  const auto threadless = std::make_unique<ThreadlessChurn>();
  const auto floor = std::make_unique<Floor>();
  const auto many = std::make_unique<Expiry>(Expiry::kMany);
  const auto few = std::make_unique<Expiry>(Expiry::kFew);
  const auto one_thread = [&] { return churn->slice(1); };
  const auto two_threads = [&] { return churn->slice(2); };
  const auto without_worker = [&] { return threadless->slice(); };
  const auto floor_pair = [&] { return floor->slice(); };
  const auto expire_many = [&] { return many->slice(); };
  const auto expire_few = [&] { return few->slice(); };
  return {
      {"churn_2_threads / churn_1_thread", ratio(two_threads, one_thread)},
      {"churn_1_thread / floor_pair", ratio(one_thread, floor_pair)},
      {"churn_without_worker / floor_pair", ratio(without_worker, floor_pair)},
      {"expire_100000_at_once / in_batches_of_2000", ratio(expire_many, expire_few)},
  };
}

}  // namespace hwt::perf
