#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/timer.h"

// The parts of net::LoopTimer that know no Asio; not for users.

namespace hwt {

namespace internal {
class ManualEngine;
}

namespace detail {

/// A timer's end for the loop that drives it, whose handlers may outlive the timer: then nothing is due any more.
class HWT_API LoopDriver {
 public:
  explicit LoopDriver(std::shared_ptr<internal::ManualEngine> engine) noexcept;

  /// Runs what is due by now. Returns when to call again, or earlier, if on_earlier says so; none: nothing is pending.
  /// Not inside a task.
  std::optional<std::chrono::steady_clock::time_point> turn();

 private:
  const std::shared_ptr<internal::ManualEngine> engine_;
};

/// A timer on steady_clock without a thread. Its tasks run in LoopDriver::turn().
class HWT_API LoopDrivenTimer : public Timer {
 public:
  std::vector<Timeout> stop() override;
  std::int64_t pending_timeouts() const noexcept override;
  std::chrono::steady_clock::time_point now() const noexcept override;

 protected:
  /// Throws std::invalid_argument for a tick of zero or less, std::bad_alloc.
  explicit LoopDrivenTimer(std::chrono::nanoseconds tick_duration);
  ~LoopDrivenTimer() override;

  LoopDriver driver() const noexcept;

  /// As ManualTimer::on_earlier(), and also when the last pending timeout has been cancelled.
  void on_earlier(std::function<void()> call);

  /// The destructor of the derived class calls it, and nothing else does: a task that is still running then finds the
  /// timer's virtual functions as they were.
  void end() noexcept;

  Timeout schedule(const TaskSource& task, std::chrono::nanoseconds delay, OnRefusal on_refusal) override;
  Timeout schedule_at(const TaskSource& task, std::chrono::steady_clock::time_point deadline,
                      OnRefusal on_refusal) override;

 private:
  const std::shared_ptr<internal::ManualEngine> engine_;
};

}  // namespace detail
}  // namespace hwt
