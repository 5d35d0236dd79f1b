#pragma once

#include <uv.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "harness/loop_job.h"

namespace perf {

/// The timers of libuv as the workloads see them: one loop in one thread, and handles that are used again for the next
/// timeout. Its clock is read once a slice, not for each timeout: a slice is far shorter than the clock's unit of 1 ms.
class LibuvTimers {
 public:
  static constexpr bool kOneLoop = true;
  struct Timer {
    uv_timer_t handle;  // its data is the receiver
    std::uint64_t id;
  };
  using Slots = std::vector<Timer>;

  explicit LibuvTimers(std::chrono::milliseconds tick);
  LibuvTimers(const LibuvTimers&) = delete;
  LibuvTimers& operator=(const LibuvTimers&) = delete;
  ~LibuvTimers();

  Slots make_slots(std::size_t size);

  template <class Receiver, class Delay>
  void schedule(Timer& slot, Receiver& receiver, std::uint64_t id, Delay delay) {
    start(slot, receiver, id, delay, [](uv_timer_t* handle) { expire<Receiver>(handle); });
  }

  bool cancel(Timer& slot) {
    if (uv_is_active(reinterpret_cast<uv_handle_t*>(&slot.handle)) == 0) return false;
    uv_timer_stop(&slot.handle);
    return true;
  }

  template <class Receiver, class Delay>
  void put_off(Timer& slot, Receiver& receiver, std::uint64_t id, Delay delay) {
    schedule(slot, receiver, id, delay);  // uv_timer_start() takes one that is pending out of its place
  }

  template <class Receiver, class Delay>
  void launch(Receiver& receiver, std::uint64_t id, Delay delay) {
    start(free_slot(), receiver, id, delay, [](uv_timer_t* handle) {
      static_cast<LibuvTimers*>(handle->loop->data)->free_.push_back(reinterpret_cast<Timer*>(handle));
      expire<Receiver>(handle);
    });
  }

  void take_over() {}  // a timer is in the heap at once
  void stop();

  void run_in_loop(LoopJob::Slice slice) { run_in_loop_every(std::chrono::milliseconds(0), std::move(slice)); }
  void run_in_loop_every(std::chrono::milliseconds interval, LoopJob::Slice slice);

 private:
  template <class Receiver, class Delay>
  void start(Timer& slot, Receiver& receiver, std::uint64_t id, Delay delay, uv_timer_cb callback) {
    slot.handle.data = &receiver;
    slot.id = id;
    const auto whole = std::chrono::ceil<std::chrono::milliseconds>(delay);
    uv_timer_start(&slot.handle, callback, static_cast<std::uint64_t>(whole.count()), 0);
  }

  template <class Receiver>
  static void expire(uv_timer_t* handle) {
    const Timer& slot = *reinterpret_cast<Timer*>(handle);
    static_cast<Receiver*>(handle->data)->expired(slot.id);
  }

  void begin_job();
  bool run_slice();
  void close_all();
  Timer& free_slot();

  uv_loop_t loop_;
  uv_async_t wake_;
  uv_idle_t slices_;
  uv_timer_t pause_;
  LoopJob job_;
  std::deque<Timer> launched_;
  std::vector<Timer*> free_;
  std::thread thread_;
};

}  // namespace perf
