// The workloads on the timers of libuv.

#include <uv.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "perf/workloads/loop_job.h"
#include "perf/workloads/runner.h"

namespace hwt::perf {
namespace {

void check(int result, const char* what) {
  if (result != 0) throw std::runtime_error(std::string(what) + ": " + uv_strerror(result));
}

/// The timers of libuv for the workloads: one loop on one thread, and handles that are used again for the next timeout.
/// The clock is read once a slice, because a slice is far shorter than the clock's unit of 1 ms.
class LibuvTimers {
 public:
  static constexpr bool kOneLoop = true;
  struct Timer {
    uv_timer_t handle;  // its data is the receiver
    std::uint64_t id;
  };
  using Slots = std::vector<Timer>;

  explicit LibuvTimers(std::chrono::microseconds /*tick*/) {
    check(uv_loop_init(&loop_), "uv_loop_init");
    loop_.data = this;
    check(uv_async_init(&loop_, &wake_, [](uv_async_t* handle) { owner_of(handle->loop).begin_job(); }),
          "uv_async_init");
    check(uv_idle_init(&loop_, &slices_), "uv_idle_init");
    check(uv_timer_init(&loop_, &pause_), "uv_timer_init");
    thread_ = std::thread([this] { uv_run(&loop_, UV_RUN_DEFAULT); });
  }
  LibuvTimers(const LibuvTimers&) = delete;
  LibuvTimers& operator=(const LibuvTimers&) = delete;
  ~LibuvTimers() {
    stop();
    uv_loop_close(&loop_);
  }

  Slots make_slots(std::size_t size) {
    Slots slots(size);
    run_in_loop([&] {
      for (Timer& slot : slots) uv_timer_init(&loop_, &slot.handle);
      return false;
    });
    return slots;
  }

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
    schedule(slot, receiver, id, delay);  // uv_timer_start() first stops a pending timer
  }

  template <class Receiver, class Delay>
  void launch(Receiver& receiver, std::uint64_t id, Delay delay) {
    start(free_slot(), receiver, id, delay, [](uv_timer_t* handle) {
      owner_of(handle->loop).free_.push_back(reinterpret_cast<Timer*>(handle));
      expire<Receiver>(handle);
    });
  }

  void take_over() {}  // a timer is in the heap at once

  void stop() {
    if (!thread_.joinable()) return;
    run_in_loop([this] {
      // The loop ends when the last handle is closed.
      uv_walk(&loop_, [](uv_handle_t* handle, void*) { uv_close(handle, nullptr); }, nullptr);
      return false;
    });
    thread_.join();
  }

  void run_in_loop(LoopJob::Slice slice) { run_in_loop_every(std::chrono::milliseconds(0), std::move(slice)); }

  void run_in_loop_every(std::chrono::milliseconds interval, LoopJob::Slice slice) {
    job_.run(std::move(slice), interval, [this] { uv_async_send(&wake_); });
  }

 private:
  static LibuvTimers& owner_of(const uv_loop_t* loop) { return *static_cast<LibuvTimers*>(loop->data); }

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

  void begin_job() {
    const auto interval = static_cast<std::uint64_t>(job_.interval().count());
    if (interval == 0) {
      // The loop expires timers and polls before each call.
      uv_idle_start(&slices_, [](uv_idle_t* handle) {
        if (!owner_of(handle->loop).run_slice()) uv_idle_stop(handle);
      });
    } else {
      const auto run_next = [](uv_timer_t* handle) {
        if (!owner_of(handle->loop).run_slice()) uv_timer_stop(handle);
      };
      uv_timer_start(&pause_, run_next, 0, interval);
    }
  }

  bool run_slice() {
    uv_update_time(&loop_);  // earlier callbacks may have taken long
    return job_.run_slice();
  }

  Timer& free_slot() {
    if (!free_.empty()) {
      Timer& slot = *free_.back();
      free_.pop_back();
      return slot;
    }
    Timer& slot = launched_.emplace_back();
    uv_timer_init(&loop_, &slot.handle);
    return slot;
  }

  uv_loop_t loop_;
  uv_async_t wake_;
  uv_idle_t slices_;
  uv_timer_t pause_;
  LoopJob job_;
  std::deque<Timer> launched_;
  std::vector<Timer*> free_;
  std::thread thread_;
};

}  // namespace
}  // namespace hwt::perf

int main(int argc, char** argv) {
  using namespace hwt::perf;
  return run({{.name = "libuv",
               .version = uv_version_string(),
               .one_loop = true,
               .note = "delays in whole milliseconds",
               .measure = &measure<LibuvTimers>}},
             argc, argv);
}
