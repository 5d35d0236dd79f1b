#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <utility>

namespace hwt::perf {

/// What one thread has the thread of a loop do: a job in slices, between which the loop looks for what is due.
class LoopJob {
 public:
  using Slice = std::function<bool()>;  // false: it was the last one

  /// Hands the job over and waits for its end; `wake_loop` has the loop call the rest of this. An `interval` is for a
  /// slice every so often, zero for one after the other.
  template <class WakeLoop>
  void run(Slice slice, std::chrono::milliseconds interval, WakeLoop wake_loop) {
    slice_ = std::move(slice);
    done_ = {};
    std::future<void> done = done_.get_future();
    interval_.store(interval, std::memory_order_release);
    wake_loop();
    done.get();
  }

  /// To be called first: has the thread of the loop see the job.
  std::chrono::milliseconds interval() const { return interval_.load(std::memory_order_acquire); }

  /// True: there is more to do.
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
