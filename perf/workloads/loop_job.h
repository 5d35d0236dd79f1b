#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <utility>

namespace hwt::perf {

/// A job for the thread of a loop. It runs in slices. Between them the loop expires timeouts.
class LoopJob {
 public:
  using Slice = std::function<bool()>;  // returns false after the last one

  /// Passes the job to the loop and waits for its end. `wake_loop` makes the loop call the members below. With an
  /// `interval` slices start at that interval, otherwise one after the other.
  template <class WakeLoop>
  void run(Slice slice, std::chrono::milliseconds interval, WakeLoop wake_loop) {
    slice_ = std::move(slice);
    done_ = {};
    std::future<void> done = done_.get_future();
    interval_.store(interval, std::memory_order_release);
    wake_loop();
    done.get();
  }

  /// Returns the interval. Call it before run_slice(): its acquire load makes the job visible to the loop's thread.
  std::chrono::milliseconds interval() const { return interval_.load(std::memory_order_acquire); }

  /// Runs a slice. Returns true if there are more.
  bool run_slice() {
    if (slice_()) return true;
    done_.set_value();
    return false;
  }

 private:
  Slice slice_;
  std::promise<void> done_;
  std::atomic<std::chrono::milliseconds> interval_;
};

}  // namespace hwt::perf
