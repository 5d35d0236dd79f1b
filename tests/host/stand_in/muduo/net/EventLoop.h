#pragma once

// Stands in for muduo: the names that a TimerQueue uses, with their signatures.

#include <chrono>
#include <cstdint>
#include <functional>

#include "tests/host/stand_in/loop.h"

namespace muduo {

class Timestamp {
 public:
  static Timestamp now() { return Timestamp(std::chrono::system_clock::now().time_since_epoch()); }
  Timestamp after(double seconds) const { return Timestamp(since_epoch_ + std::chrono::duration<double>(seconds)); }

 private:
  friend double timeDifference(Timestamp high, Timestamp low) { return (high.since_epoch_ - low.since_epoch_).count(); }

  explicit Timestamp(std::chrono::duration<double> since_epoch) : since_epoch_(since_epoch) {}
  std::chrono::duration<double> since_epoch_;
};

namespace net {

class Timer;
using TimerCallback = std::function<void()>;
using EventLoop = stand_in::Loop;

class TimerId {
 public:
  TimerId() = default;
  TimerId(Timer* timer, std::int64_t sequence) : timer_(timer), sequence_(sequence) {}
  friend class TimerQueue;

 private:
  [[maybe_unused]] Timer* timer_ = nullptr;
  std::int64_t sequence_ = 0;
};

class Channel : public stand_in::Channel {
 public:
  using stand_in::Channel::Channel;
  void setReadCallback(std::function<void(Timestamp)> callback) {
    set_callback([callback] { callback(Timestamp::now()); });
  }
};

}  // namespace net
}  // namespace muduo
