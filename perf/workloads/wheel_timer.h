#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/timer.h"

namespace hwt::perf {

/// Adapts hwt::HashedWheelTimer, or another timer with its members, to the workloads.
template <class Timer>
class WheelTimer {
 public:
  static constexpr bool kOneLoop = false;
  using Slots = std::vector<hwt::Timeout>;

  explicit WheelTimer(std::chrono::microseconds tick) : tick_(tick), timer_(tick) { timer_.start(); }

  Slots make_slots(std::size_t size) const { return Slots(size); }

  template <class Receiver, class Delay>
  void schedule(hwt::Timeout& slot, Receiver& receiver, std::uint64_t id, Delay delay) {
    slot = timer_.new_timeout([&receiver, id] { receiver.expired(id); }, delay);
  }

  bool cancel(hwt::Timeout& slot) { return slot.cancel(); }

  template <class Receiver, class Delay>
  void put_off(hwt::Timeout& slot, Receiver&, std::uint64_t, Delay delay) {
    slot.reschedule(delay);
  }

  template <class Receiver, class Delay>
  void launch(Receiver& receiver, std::uint64_t id, Delay delay) {
    timer_.new_timeout([&receiver, id] { receiver.expired(id); }, delay);
  }

  /// Waits until all scheduled timeouts are in the wheel. Wakes the worker by one that is due now, because a sleeping
  /// worker leaves later timeouts in the queue.
  void take_over() {
    while (timer_.stats().backlog != 0) {
      timer_.new_timeout([] {}, std::chrono::seconds(0));
      std::this_thread::sleep_for(tick_);
    }
    std::this_thread::sleep_for(2 * tick_);
  }

  void stop() { timer_.stop(); }

 private:
  std::chrono::microseconds tick_;
  Timer timer_;
};

}  // namespace hwt::perf
