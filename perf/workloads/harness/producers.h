#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>

#include "harness/crew.h"

namespace perf {

/// What of `total` is thread t's: the first ones take one more if it does not divide.
inline std::int64_t share_of(std::int64_t total, int t, int threads) {
  return total / threads + (t < total % threads ? 1 : 0);
}

inline constexpr std::int64_t kSlice = 256;  // operations between two polls of a loop

/// Where the operations of a workload are done: in threads, or in the loop of a timer that allows nothing else.
template <class Timer>
class Producers {
 public:
  Producers(Timer& timer, int threads) : timer_(timer), threads_(threads) {
    if constexpr (!Timer::kOneLoop) crew_.emplace(threads);
  }

  /// Has each thread t do its share(t) with work(t, how_many): in one go, or in a loop slice by slice.
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

  template <class Work>
  void run_divided(std::int64_t total, Work work) {
    run([this, total](int t) { return share_of(total, t, threads_); }, work);
  }

 private:
  Timer& timer_;
  int threads_;
  std::optional<Crew> crew_;
};

/// Calls `slice` every so often until it returns false.
template <class Timer, class Slice>
void run_every(Timer& timer, std::chrono::milliseconds interval, Slice slice) {
  if constexpr (Timer::kOneLoop) {
    timer.run_in_loop_every(interval, std::move(slice));
  } else {
    auto next = std::chrono::steady_clock::now();
    while (slice()) std::this_thread::sleep_until(next += interval);
  }
}

/// What the timer and its timeouts use outlives this, which stops the timer when anything is thrown.
template <class Timer>
class StopAtEnd {
 public:
  explicit StopAtEnd(Timer& timer) : timer_(timer) {}
  StopAtEnd(const StopAtEnd&) = delete;
  StopAtEnd& operator=(const StopAtEnd&) = delete;
  ~StopAtEnd() { timer_.stop(); }

 private:
  Timer& timer_;
};

}  // namespace perf
