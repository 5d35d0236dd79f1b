#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt {

/// Triggers again and again until it is stopped: for the timers of a state machine, such as elections, votes,
/// heartbeats, snapshots. Its owner starts, stops and restarts it from any thread, from inside a trigger as well.
///
///   hwt::RepeatedTimer election("election", 150ms, timer,
///                               {.on_trigger = [&] { become_candidate(); },
///                                .adjust_timeout = [&](auto timeout) { return timeout + random_up_to(timeout); }});
///   election.start();
///   election.restart();   // a heartbeat came: the next trigger is a whole timeout away
///
/// Guarantees: at most one timeout is armed at any moment, so the rate never multiplies; a trigger never overlaps
/// another one; after stop() none starts; on_destroy runs exactly once. The timeout counts from the end of a trigger
/// (fixed delay), from start(), restart() and reset().
/// Threads: any may call any member, hooks included. Hooks run one at a time, on the Timer's worker or executor, or on
/// the caller's thread where a member says so, and without a lock. A call that comes while one runs takes effect when
/// it has returned. If a call starts the Timer, the thread_factory runs with a lock held and must not call this.
/// fork(): in the child, stop(), destroy() and the destructor return at once and leave all as it is, without
/// on_destroy.
/// Not for: outliving its Timer, which may be shared and is never stopped by it; a fixed rate: Schedule is for that.
/// Source: SOFAJRaft's RepeatedTimer; braft's RepeatedTimerTask.
class HWT_API RepeatedTimer {
 public:
  /// What a hook throws leaves the call that ran it, once everything else is done; on the Timer's thread it goes to the
  /// Timer's error handler. Several errors at once become one std::runtime_error that tells all of them. The triggers
  /// go on, after a throwing adjust_timeout with the timeout as it is. They end only when the Timer refuses the next
  /// timeout (stopped, max_pending_timeouts, no memory): that is reported in the same way, running() is then false, and
  /// start() tries again. An executor that drops a task without a word ends them unnoticed, until restart().
  struct Hooks {
    std::function<void()> on_trigger;  ///< required
    /// Returns the timeout to use this time, for jitter; <= 0 means the next tick. Called once for each arming, with
    /// the timeout, and again if reset() changes that meanwhile. Empty: the timeout as it is.
    std::function<std::chrono::nanoseconds(std::chrono::nanoseconds)> adjust_timeout = {};
    std::function<void()> on_destroy = {};  ///< exactly once; no hook runs afterwards, and all are released
  };

  /// Not started. `name` is for describe(). Throws std::invalid_argument for a timeout that is NaN or <= 0, and for an
  /// empty on_trigger; std::bad_alloc.
  RepeatedTimer(std::string name, Delay timeout, Timer& timer, Hooks hooks);

  /// destroy(), and waits for a hook that is running, unless called from inside it. What on_destroy throws goes to
  /// stderr.
  ~RepeatedTimer();
  RepeatedTimer(const RepeatedTimer&) = delete;
  RepeatedTimer& operator=(const RepeatedTimer&) = delete;

  /// Arms if stopped, else does nothing. To arm is to schedule the next trigger. While a hook runs: the end of the hook
  /// arms.
  /// Throws what new_timeout() throws, being stopped then: IllegalState once the Timer was stopped, RejectedExecution,
  /// std::bad_alloc. Throws what adjust_timeout throws, being armed. Likewise restart() and reset().
  /// While another thread is arming, start(), restart() and reset() wait for it. If that thread is refused, start() and
  /// restart() then arm themselves or throw; reset() finds the timer stopped. No call waits for a hook: if the end of
  /// the hook cannot arm, the error leaves the call that runs the hook, or goes to the Timer's error handler.
  void start();

  /// No trigger starts afterwards until start() or restart(). One that is running finishes; stop() does not wait for
  /// it.
  void stop();

  /// Arms from now, also when stopped. While a hook runs: the end of the hook arms, once.
  void restart();

  /// If running, arms from now; nothing if stopped. While a hook runs: the end of the hook arms, once.
  void reset();

  /// The same with a new timeout, which is also stored when stopped. Throws std::invalid_argument if it is NaN or <= 0;
  /// then nothing has changed.
  void reset(Delay timeout);

  /// If running and no hook runs: triggers at once, on this thread, instead of when it was due, arms again and returns
  /// true. Otherwise returns false. Throws what the hooks throw, after all of that.
  bool run_once_now();

  /// Ends it for good: nothing triggers afterwards, and calls that would change something do nothing. on_destroy runs
  /// before destroy() returns; or, while a hook runs, after that hook, on its thread: destroy() does not wait for it. A
  /// second call does nothing.
  void destroy();

  /// What the constructor or the latest reset() set.
  std::chrono::nanoseconds timeout() const noexcept;

  /// It will trigger unless a call prevents it. False when stopped or destroyed, and once the Timer was stopped. True
  /// while a hook runs or a thread is arming, although the Timer may refuse the timeout yet.
  bool running() const noexcept;

  /// One line, such as "RepeatedTimer(election, timeout: 150000000 ns, running)"; states: running, stopped, destroyed,
  /// followed by ", triggering" while on_trigger runs.
  std::string describe() const;

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with the armed timeout, and with calls during which the owner may go
};

}  // namespace hwt
