#include "libuv_timers.h"

#include <stdexcept>
#include <string>

namespace perf {
namespace {

void check(int result, const char* what) {
  if (result != 0) throw std::runtime_error(std::string(what) + ": " + uv_strerror(result));
}

LibuvTimers& owner_of(const uv_loop_t* loop) { return *static_cast<LibuvTimers*>(loop->data); }

}  // namespace

LibuvTimers::LibuvTimers(std::chrono::milliseconds /*tick*/) {
  check(uv_loop_init(&loop_), "uv_loop_init");
  loop_.data = this;
  check(uv_async_init(&loop_, &wake_, [](uv_async_t* handle) { owner_of(handle->loop).begin_job(); }), "uv_async_init");
  check(uv_idle_init(&loop_, &slices_), "uv_idle_init");
  check(uv_timer_init(&loop_, &pause_), "uv_timer_init");
  thread_ = std::thread([this] { uv_run(&loop_, UV_RUN_DEFAULT); });
}

LibuvTimers::~LibuvTimers() {
  stop();
  uv_loop_close(&loop_);
}

LibuvTimers::Slots LibuvTimers::make_slots(std::size_t size) {
  Slots slots(size);
  run_in_loop([&] {
    for (Timer& slot : slots) uv_timer_init(&loop_, &slot.handle);
    return false;
  });
  return slots;
}

void LibuvTimers::stop() {
  if (!thread_.joinable()) return;
  run_in_loop([this] {
    close_all();
    return false;
  });
  thread_.join();
}

void LibuvTimers::run_in_loop_every(std::chrono::milliseconds interval, LoopJob::Slice slice) {
  job_.run(std::move(slice), interval, [this] { uv_async_send(&wake_); });
}

void LibuvTimers::begin_job() {
  const auto interval = static_cast<std::uint64_t>(job_.interval().count());
  if (interval == 0) {
    // The loop looks for expired timers and polls before each call.
    uv_idle_start(&slices_, [](uv_idle_t* handle) {
      if (!owner_of(handle->loop).run_slice()) uv_idle_stop(handle);
    });
  } else {
    uv_timer_start(
        &pause_,
        [](uv_timer_t* handle) {
          if (!owner_of(handle->loop).run_slice()) uv_timer_stop(handle);
        },
        0, interval);
  }
}

bool LibuvTimers::run_slice() {
  uv_update_time(&loop_);  // the callbacks before may have taken long
  return job_.run_slice();
}

// The loop ends when the last handle has been closed.
void LibuvTimers::close_all() {
  uv_walk(
      &loop_, [](uv_handle_t* handle, void*) { uv_close(handle, nullptr); }, nullptr);
}

LibuvTimers::Timer& LibuvTimers::free_slot() {
  if (free_.empty()) {
    Timer& slot = launched_.emplace_back();
    uv_timer_init(&loop_, &slot.handle);
    return slot;
  }
  Timer& slot = *free_.back();
  free_.pop_back();
  return slot;
}

}  // namespace perf
