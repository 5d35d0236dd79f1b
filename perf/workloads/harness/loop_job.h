#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>

namespace perf {

/// What one thread has the thread of a loop do: a job in slices, between which the loop looks for what is due.
class LoopJob {
 public:
  using Slice = std::function<bool()>;  // false: it was the last one

  /// Hands the job over and waits for its end; `wake_loop` has the loop call the rest of this. An `interval` is for a
  /// slice every so often, zero for one after the other.
  void run(Slice slice, std::chrono::milliseconds interval, const std::function<void()>& wake_loop);

  std::chrono::milliseconds interval();
  /// True: there is more to do.
  bool run_slice();

 private:
  void finish(std::exception_ptr error);

  std::mutex mutex_;  // guards all below; the slice only while it is handed over
  std::condition_variable finished_;
  Slice slice_;
  std::chrono::milliseconds interval_{0};
  bool done_ = true;
  std::exception_ptr error_;
};

}  // namespace perf
