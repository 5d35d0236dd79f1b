#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/timer.h"

namespace hwt::perf {

template <class Handle>
concept CanReschedule = requires(Handle handle, std::chrono::seconds delay) {
  { handle.reschedule(delay) } -> std::convertible_to<bool>;
};

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

  template <class Handle, class Receiver, class Delay>
  void put_off(Handle& slot, Receiver& receiver, std::uint64_t id, Delay delay) {
    if constexpr (CanReschedule<Handle>) {
      slot.reschedule(delay);
    } else if (slot.cancel()) {
      schedule(slot, receiver, id, delay);
    }
  }

  template <class Receiver, class Delay>
  void launch(Receiver& receiver, std::uint64_t id, Delay delay) {
    timer_.new_timeout([&receiver, id] { receiver.expired(id); }, delay);
  }

  /// Moves the scheduled timeouts into the wheel: schedules one that is due now. A sleeping worker would otherwise
  /// leave later timeouts in the queue.
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
