#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/internal/core.h"
#include "hashed_wheel_timer/internal/diagnostics.h"
#include "hashed_wheel_timer/internal/unprocessed.h"
#include "hashed_wheel_timer/options.h"

namespace hwt::internal {

/// The life of a timer with a thread: starts it once, stops it once, whoever asks and however many at a time. What the
/// thread does is the derived class's.
class WorkerThread {
 public:
  WorkerThread(Timer& timer, const Options& options);
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  /// Started when it returns. Throws IllegalState after stop(), and what making the thread throws; then a later call
  /// tries again. Waits for another thread's start().
  void start();

  /// See Timer::new_timeout() and try_new_timeout().
  Timeout schedule(const detail::TaskSource& task, std::chrono::nanoseconds delay, bool throws);

  /// See Timer::stop().
  std::vector<Timeout> stop();

  /// The timer goes: stops, drops what is unprocessed and deletes this, or, on the worker itself, leaves that to it. In
  /// a forked child, which has a copy of everything but the worker, all of it is left as it is: no telling what the
  /// worker was at.
  void destroy() noexcept;

  Core& core() noexcept { return *core_; }

 protected:
  virtual ~WorkerThread() = default;

  /// The worker's work from Started until the phase is another.
  virtual void turn() noexcept = 0;
  /// See Driver::empty().
  virtual Node* empty() noexcept = 0;

 private:
  struct Launch;

  bool on_worker() const noexcept;
  bool in_forked_child() const noexcept;
  void body() noexcept;
  /// Ends the worker if there is one; returns when it has finished, whoever ended it.
  void finish(std::unique_lock<std::mutex>& lock) noexcept;
  void set_phase(Phase phase) noexcept;

  struct CloseCore {
    void operator()(Core* core) const noexcept { core->close(); }
  };

  const std::unique_ptr<Core, CloseCore> core_;
  const std::function<std::thread(std::function<void()>)> thread_factory_;
  LiveInstance instance_;

  // Guards the changes of core_.phase and what follows.
  std::mutex mutex_;
  std::condition_variable phase_changed_;
  std::thread thread_;
  std::int64_t process_ = 0;  // where the worker runs; 0: nowhere

  // The worker's until it has finished, then guarded by mutex_.
  Unprocessed unprocessed_;
  bool delete_when_finished_ = false;  // the worker's alone
};

}  // namespace hwt::internal
