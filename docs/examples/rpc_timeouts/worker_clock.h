#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

namespace rpc {

/// Makes the thread of a timer (for hwt::Options::thread_factory) and tells how much processor time it has used.
class WorkerClock {
 public:
  WorkerClock();

  /// The factory shares the clock, it may outlive this object.
  std::function<std::thread(std::function<void()>)> thread_factory() const;

  /// Nothing before the thread runs, and on systems that cannot tell.
  /// Precondition: the thread has not ended, that is, the timer has not been stopped.
  std::optional<std::chrono::nanoseconds> cpu_time() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace rpc
