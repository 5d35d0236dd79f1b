#include "harness/loop_job.h"

#include <utility>

namespace perf {

void LoopJob::run(Slice slice, std::chrono::milliseconds interval, const std::function<void()>& wake_loop) {
  std::unique_lock lock(mutex_);
  slice_ = std::move(slice);
  interval_ = interval;
  done_ = false;
  lock.unlock();
  wake_loop();
  lock.lock();
  finished_.wait(lock, [this] { return done_; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

std::chrono::milliseconds LoopJob::interval() {
  const std::lock_guard lock(mutex_);
  return interval_;
}

bool LoopJob::run_slice() {
  try {
    if (slice_()) return true;
    finish(nullptr);
  } catch (...) {
    finish(std::current_exception());
  }
  return false;
}

void LoopJob::finish(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
    error_ = std::move(error);
  }
  finished_.notify_one();
}

}  // namespace perf
