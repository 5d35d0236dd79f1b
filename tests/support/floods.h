#pragma once

// Loads that keep a timer as busy as they can. Each function returns when `over` is set, and leaves nothing pending.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/timer.h"

namespace hwt::test {

/// The longest call, and the number of calls.
class CallTimes {
 public:
  /// Returns what f() returns.
  template <class F>
  decltype(auto) operator()(F f) {
    struct Note {
      ~Note() { calls.note(std::chrono::steady_clock::now() - begin); }
      CallTimes& calls;
      std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    } const note{*this};
    return f();
  }
  void note(std::chrono::nanoseconds time) {
    count_.fetch_add(1, std::memory_order_relaxed);
    for (auto seen = longest_.load(); time > seen && !longest_.compare_exchange_weak(seen, time);) {
    }
  }
  std::int64_t count() const { return count_; }
  std::chrono::nanoseconds longest() const { return longest_; }

 private:
  std::atomic<std::int64_t> count_{0};
  std::atomic<std::chrono::nanoseconds> longest_{};
};

/// The times of the calls of a flood.
struct FloodCalls {
  CallTimes schedule;
  CallTimes cancel;
  CallTimes move;
};

inline constexpr std::chrono::hours kAfterTheFlood{1};

/// The task of a timeout that a flood cancels.
struct NotRun {
  void operator()() const { std::abort(); }
};

/// Runs f(index) on `count` threads, and waits for them.
template <class F>
void on_threads(int count, F f) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([i, &f] { f(i); });
}

/// Threads that schedule and cancel as fast as they can, so many timeouts in flight each. `task`: null for a callable.
inline void schedule_and_cancel(Timer& timer, const std::atomic<bool>& over, FloodCalls& calls, int threads,
                                std::size_t in_flight, const std::shared_ptr<TimerTask>& task = nullptr) {
  on_threads(threads, [&](int) {
    std::vector<Timeout> timeouts(in_flight);
    while (!over) {
      for (Timeout& timeout : timeouts) {
        if (over) break;
        calls.cancel([&] { timeout.cancel(); });
        timeout = calls.schedule([&] {
          return task != nullptr ? timer.new_timeout(task, kAfterTheFlood)
                                 : timer.new_timeout(NotRun(), kAfterTheFlood);
        });
      }
    }
    for (Timeout& timeout : timeouts) timeout.cancel();
  });
}

/// So many tasks that schedule themselves again without a delay.
inline void schedule_again(Timer& timer, const std::atomic<bool>& over, int tasks) {
  struct Again {
    void operator()() const {
      if (!over) timer.add(*this, std::chrono::nanoseconds(0));
    }
    Timer& timer;
    const std::atomic<bool>& over;
  };
  for (int i = 0; i < tasks; ++i) timer.add(Again{timer, over}, std::chrono::nanoseconds(0));
  while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Threads that move the timeouts of others to and fro in the wheel.
inline void reschedule_always(Timer& timer, const std::atomic<bool>& over, FloodCalls& calls, int threads,
                              std::size_t timeouts) {
  std::vector<Timeout> moved(timeouts);
  for (Timeout& timeout : moved) timeout = timer.new_timeout(NotRun(), 2 * kAfterTheFlood);
  on_threads(threads, [&](int thread) {
    while (!over) {
      for (auto i = static_cast<std::size_t>(thread); i < moved.size() && !over; ++i) {
        calls.move([&] { moved[i].reschedule(kAfterTheFlood - std::chrono::milliseconds(i % 7)); });
        calls.move([&] { moved[i].reschedule(2 * kAfterTheFlood); });
      }
    }
  });
  for (Timeout& timeout : moved) timeout.cancel();
}

/// Many threads with far timeouts, which they leave to the worker.
inline void leave_far_ones(Timer& timer, const std::atomic<bool>& over, FloodCalls& calls, int threads, int timeouts) {
  on_threads(threads, [&](int) {
    while (!over) {
      std::vector<Timeout> left;
      for (int i = 0; i < timeouts && !over; ++i) {
        left.push_back(calls.schedule([&] { return timer.new_timeout(NotRun(), kAfterTheFlood); }));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      for (Timeout& timeout : left) calls.cancel([&] { timeout.cancel(); });
    }
  });
}

}  // namespace hwt::test
