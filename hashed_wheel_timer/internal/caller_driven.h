#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/internal/core.h"
#include "hashed_wheel_timer/internal/driver.h"
#include "hashed_wheel_timer/internal/hierarchical_wheel.h"
#include "hashed_wheel_timer/internal/tick_grid.h"
#include "hashed_wheel_timer/internal/unprocessed.h"
#include "hashed_wheel_timer/options.h"

namespace hwt::internal {

/// A timer without a thread and without a clock of its own: whoever calls advance() does the worker's part. Times are
/// nanoseconds since the epoch of steady_clock.
class CallerDriven {
 public:
  CallerDriven(Timer& timer, const Options& options, std::int64_t start);
  CallerDriven(const CallerDriven&) = delete;
  CallerDriven& operator=(const CallerDriven&) = delete;

  Core& core() noexcept { return *core_; }

  /// See ManualTimer.
  Timeout schedule(const detail::TaskSource& task, std::int64_t delay, bool throws);
  std::size_t advance(std::int64_t by);
  std::size_t advance_to(std::int64_t now, std::size_t max_tasks);
  std::optional<std::int64_t> next_wakeup();
  std::vector<Timeout> stop();

  /// The timer goes. Inside a task, this stays until the advance() that runs it ends.
  void destroy() noexcept;

 private:
  class Turn;
  enum class Clock { Jumps, Steps };

  // Without the mutex: what it destroys is the user's, and may still ask for something.
  ~CallerDriven() { unprocessed_.drop(); }

  bool turning_here() const noexcept;
  void refuse_inside_task(const char* what) const;
  std::size_t turn(std::int64_t now, std::size_t max_tasks, Clock clock);
  /// False: there is no memory to take all of it into the wheel.
  bool transfer_all() noexcept;
  void finish() noexcept;

  struct CloseCore {
    void operator()(Core* core) const noexcept { core->close(); }
  };

  const std::unique_ptr<Core, CloseCore> core_;
  const TickGrid grid_;

  // Held by the thread that turns the wheel; it guards what follows.
  std::mutex mutex_;
  // Hierarchical: a tick of a nanosecond and a delay of years must cost no more than others.
  Driver<HierarchicalWheel> driver_;
  Unprocessed unprocessed_;
  bool destroyed_ = false;

  // Who holds the mutex. relaxed: a thread compares it with itself alone, and what it stored it sees.
  std::atomic<std::thread::id> turning_{};
};

}  // namespace hwt::internal
