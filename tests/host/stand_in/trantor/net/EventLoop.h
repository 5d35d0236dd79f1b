#pragma once

// Stands in for trantor: the names that a TimerQueue uses, with their signatures.

#include <chrono>
#include <cstdint>
#include <functional>

#include "tests/host/stand_in/loop.h"

namespace trantor {

using TimerId = std::uint64_t;
using TimerCallback = std::function<void()>;
using TimePoint = std::chrono::steady_clock::time_point;
using TimeInterval = std::chrono::microseconds;
using EventLoop = stand_in::Loop;

class Channel : public stand_in::Channel {
 public:
  using stand_in::Channel::Channel;
  void setReadCallback(const std::function<void()>& callback) { set_callback(callback); }
};

}  // namespace trantor
