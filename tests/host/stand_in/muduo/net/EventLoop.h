#pragma once

// Stands in for muduo: the names that a TimerQueue uses, with their signatures. The behaviour was seen in muduo f1fc77e
// (2.0.3) on 2026-11-28.

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>

#include "tests/host/stand_in/loop.h"

namespace muduo {

/// A time of the wall clock in whole microseconds.
class Timestamp {
 public:
  explicit Timestamp(std::int64_t microseconds) : microseconds_(microseconds) {}

  static Timestamp now() {
    const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
    return Timestamp(std::chrono::duration_cast<std::chrono::microseconds>(since_epoch).count());
  }
  std::int64_t microSecondsSinceEpoch() const { return microseconds_; }

 private:
  std::int64_t microseconds_;
};

inline double timeDifference(Timestamp high, Timestamp low) {
  return static_cast<double>(high.microSecondsSinceEpoch() - low.microSecondsSinceEpoch()) / 1e6;
}

inline Timestamp addTime(Timestamp time, double seconds) {
  return Timestamp(time.microSecondsSinceEpoch() + static_cast<std::int64_t>(seconds * 1e6));
}

namespace net {

class Timer;
using TimerCallback = std::function<void()>;

class TimerId {
 public:
  TimerId() = default;
  TimerId(Timer* timer, std::int64_t sequence) : timer_(timer), sequence_(sequence) {}
  friend class TimerQueue;

 private:
  [[maybe_unused]] Timer* timer_ = nullptr;
  std::int64_t sequence_ = 0;
};

class EventLoop : public stand_in::Loop {
 public:
  /// In its own thread, muduo's loop wakes itself only for functions that queued functions queue. Before loop(), after
  /// it, and in a callback of a Channel, it does not. If another thread changes a Channel, muduo logs a fatal error,
  /// which aborts.
  EventLoop()
      : Loop({.wakes_itself = [](const Loop& loop) { return loop.calling_queued(); },
              .runs_all_queued = false,
              .refuse_other_thread = [] { std::abort(); }}) {}
  using Loop::wakeup;
};

}  // namespace net
}  // namespace muduo
