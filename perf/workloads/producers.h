#pragma once

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "perf/workloads/options.h"

namespace hwt::perf {

inline constexpr std::size_t kCacheLine = 64;
inline constexpr std::int64_t kSlice = 256;  // operations between two polls of a loop

/// Returns the id before the first one of thread t.
inline std::uint64_t first_id(int t) { return static_cast<std::uint64_t>(t) << 40; }

/// Threads that do one job after another together. They live for all jobs, so that a timer allocates its state for a
/// thread only once.
class Crew {
 public:
  explicit Crew(int threads) : meeting_(threads + 1) {
    for (int t = 0; t < threads; ++t) threads_.emplace_back(&Crew::work, this, t);
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() { run(nullptr); }

  /// Calls job(t) on each thread t and returns when all are done. The caller then sees their writes.
  void run(std::function<void(int)> job) {
    job_ = std::move(job);
    meeting_.arrive_and_wait();
    if (job_) meeting_.arrive_and_wait();
  }

 private:
  void work(int t) {
    for (;;) {
      meeting_.arrive_and_wait();
      if (!job_) return;
      job_(t);
      meeting_.arrive_and_wait();
    }
  }

  std::barrier<> meeting_;  // before and after a job
  std::function<void(int)> job_;
  std::vector<std::jthread> threads_;
};

/// Runs operations in threads, or in the loop of a timer that allows no other thread.
template <class Timer>
class Producers {
 public:
  Producers(Timer& timer, int threads) : timer_(timer) {
    if constexpr (!Timer::kOneLoop) crew_.emplace(threads);
  }

  /// Makes each thread t do its share(t) with work(t, how_many), at once or in slices of a loop.
  template <class Share, class Work>
  void run(Share share, Work work) {
    if constexpr (Timer::kOneLoop) {
      timer_.run_in_loop([work, left = share(0)]() mutable {
        const std::int64_t slice = std::min(left, kSlice);
        work(0, slice);
        left -= slice;
        return left > 0;
      });
    } else {
      crew_->run([&](int t) { work(t, share(t)); });
    }
  }

 private:
  Timer& timer_;
  std::optional<Crew> crew_;
};

/// Calls `slice` at this interval until it returns false.
template <class Timer, class Slice>
void run_every(Timer& timer, std::chrono::milliseconds interval, Slice slice) {
  if constexpr (Timer::kOneLoop) {
    timer.run_in_loop_every(interval, std::move(slice));
  } else {
    auto next = std::chrono::steady_clock::now();
    while (slice()) std::this_thread::sleep_until(next += interval);
  }
}

}  // namespace hwt::perf
