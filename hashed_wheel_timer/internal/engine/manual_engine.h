#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/engine/driver.h"
#include "hashed_wheel_timer/internal/engine/tick_grid.h"
#include "hashed_wheel_timer/internal/engine/unprocessed.h"
#include "hashed_wheel_timer/internal/wheel/hierarchical_wheel.h"
#include "hashed_wheel_timer/options.h"

namespace hwt::internal {

/// A timer without a thread and without a clock of its own: whoever calls advance() does the worker's part. Times are
/// nanoseconds since the epoch of steady_clock.
class ManualEngine {
 public:
  ManualEngine(Timer& timer, const Options& options, std::int64_t start);
  ManualEngine(const ManualEngine&) = delete;
  ManualEngine& operator=(const ManualEngine&) = delete;

  Core& core() noexcept { return *core_; }

  /// See ManualTimer.
  Timeout schedule(const detail::TaskSource& task, std::int64_t deadline, bool throws);
  std::size_t advance(std::int64_t by);
  std::size_t advance_to(std::int64_t now, std::size_t max_tasks);
  std::optional<std::int64_t> next_wakeup();
  std::vector<Timeout> stop();

  /// The timer goes. Inside a task, the engine stays until the advance() that runs it ends.
  void destroy() noexcept;

 private:
  class Turn;
  enum class Clock { Jumps, Steps };
  using Pass = Driver<HierarchicalWheel>::Pass;

  // Without the mutex: what it destroys is the user's, and may still call the engine.
  ~ManualEngine() { unprocessed_.drop(); }

  bool turning_here() const noexcept;
  void refuse_inside_task(const char* what) const;
  std::size_t turn(std::int64_t now, std::size_t max_tasks, Clock clock);
  /// False: there is no memory to take all of it into the wheel.
  bool transfer_all() noexcept;
  void give_memory_back() noexcept;
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

  // The thread that holds the mutex. relaxed: a thread only looks for its own id, which nobody else stores.
  std::atomic<std::thread::id> turning_{};
};

}  // namespace hwt::internal
