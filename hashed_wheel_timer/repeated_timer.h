// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt {

/// Triggers again and again until it is stopped, for the timers of a state machine such as elections, votes, heartbeats
/// and snapshots. Any thread may start, stop and restart it, also inside a trigger.
///
///   hwt::RepeatedTimer election("election", 150ms, timer,
///                               {.on_trigger = [&] { become_candidate(); },
///                                .adjust_timeout = [&](auto timeout) { return timeout + random_up_to(timeout); }});
///   election.start();
///   election.restart();   // a heartbeat came: the next trigger is a whole timeout away
///
/// Guarantees: at most one timeout is armed at any moment, so the rate never multiplies. A trigger never overlaps
/// another one. After stop() none starts. on_destroy runs exactly once. The timeout counts from the end of a trigger
/// (fixed delay), and from start(), restart() and reset().
/// Threads: any thread may call any member, also in hooks. Only the destructor must not race other calls, except those
/// in a running hook. Hooks run one at a time and without a lock, on the Timer's worker or executor, or on the caller's
/// thread where a member says so. A call that comes while a hook runs takes effect when the hook has returned. While a
/// thread is arming, calls of other threads that change something wait for it. Only the destructor waits for a hook. If
/// a call starts the Timer, its thread_factory must not call this object. The function of on_earlier() may: it is
/// called when the call has armed.
/// Fork: in the child, until it has turned or started the Timer, stop(), destroy() and the destructor return at once.
/// They release nothing and do not call on_destroy. The child must not call start(), restart(), reset() or
/// run_once_now(). They would wait for ever if another thread was arming at the fork, because the child does not have
/// that thread. Afterwards all members work, if no other thread was in a call or a hook at the fork.
/// Not for: outliving its Timer, which it never stops; a fixed rate, for which see Schedule.
/// Source: SOFAJRaft's RepeatedTimer; braft's RepeatedTimerTask.
class HWT_API RepeatedTimer {
 public:
  /// The functions of the user. The call that runs a hook throws the hook's exception, after it has armed, stopped or
  /// destroyed the timer. On the Timer's thread the exception goes to the Timer's error handler. Several errors at once
  /// become one std::runtime_error with all texts.
  /// The triggers go on; after a throwing adjust_timeout they use the timeout as it is. They end only when the Timer
  /// refuses the next timeout (stopped, max_pending_timeouts, no memory). That is reported in the same way, by a
  /// message that names this object. running() is then false, and start() tries again. An executor that drops a task
  /// ends them unnoticed, until restart(), reset() or run_once_now().
  struct Hooks {
    std::function<void()> on_trigger;  ///< required
    /// Returns the timeout to use this time, for jitter; zero or less means the next tick. Called once for each arming,
    /// with the timeout, and again if reset() on another thread changes the timeout meanwhile. A reset() inside it
    /// counts for the next arming. Empty: the timeout as it is.
    std::function<std::chrono::nanoseconds(std::chrono::nanoseconds)> adjust_timeout = {};
    std::function<void()> on_destroy = {};  ///< runs exactly once, as the last hook; the hooks are destroyed after it
  };

  /// Makes a stopped timer. `name` is for describe(). Throws std::invalid_argument for a timeout that is NaN, zero or
  /// less, and for an empty on_trigger; std::bad_alloc.
  RepeatedTimer(std::string name, Delay timeout, Timer& timer, Hooks hooks);

  /// Calls destroy(), and waits for a running hook, except inside it. Hold no lock that a hook takes. An exception of
  /// on_destroy goes to stderr.
  ~RepeatedTimer();
  RepeatedTimer(const RepeatedTimer&) = delete;
  RepeatedTimer& operator=(const RepeatedTimer&) = delete;

  /// Schedules the next trigger (arms) if stopped; otherwise does nothing. Runs adjust_timeout on this thread. If a
  /// hook is running, its thread arms after the hook. If that fails, the call that runs the hook throws the error; on
  /// the Timer's thread the error goes to the Timer's error handler.
  /// If the Timer refuses, throws what new_timeout() throws and stays stopped: IllegalState, RejectedExecution,
  /// std::bad_alloc. If adjust_timeout throws, arms with the timeout as it is, and then throws that. If another thread
  /// was arming and is refused, this call arms, or throws.
  void start();

  /// Cancels the next trigger. None starts until start() or restart(). A running one finishes; stop() does not wait for
  /// it.
  void stop();

  /// Arms from now, also if stopped. If a hook is running, its thread arms once, after the hook. Runs adjust_timeout on
  /// this thread, and throws what start() throws. After std::bad_alloc a timeout that was armed before may still be
  /// armed.
  void restart();

  /// Arms from now if running. If a hook is running, its thread arms once, after the hook. Runs adjust_timeout on this
  /// thread, and throws what start() throws. After std::bad_alloc the timeout that was armed before may still be armed.
  void reset();

  /// Stores a new timeout, also if stopped, and arms from now if running. If a hook is running, its thread arms once,
  /// after the hook. Runs adjust_timeout on this thread, and throws what start() throws. After std::bad_alloc the new
  /// timeout is stored, but the one that was armed before may still be armed. Inside adjust_timeout it only stores the
  /// timeout, for the next arming. Throws std::invalid_argument if the timeout is NaN, zero or less; then nothing has
  /// changed.
  void reset(Delay timeout);

  /// Runs on_trigger on this thread, arms again and returns true, if running and no hook runs. Otherwise returns false.
  /// Afterwards throws the exceptions of the hooks, and what start() throws if the Timer refuses the next timeout.
  bool run_once_now();

  /// Ends it for good: nothing triggers afterwards, and calls that would change something do nothing. on_destroy runs
  /// before destroy() returns, and destroy() throws its exception. While a hook runs, on_destroy runs after that hook,
  /// on its thread, and destroy() does not wait for it. A second call does nothing.
  void destroy();

  /// Returns the timeout of the constructor or of the latest reset().
  std::chrono::nanoseconds timeout() const noexcept;

  /// Returns whether it will trigger unless a call prevents it. False after stop() and destroy(). Otherwise true while
  /// a hook runs, a thread is arming, or a trigger waits in an executor, although the Timer may refuse the next
  /// timeout. If the executor drops the trigger, it stays true. In all other cases a stopped Timer makes it false.
  bool running() const noexcept;

  /// Returns a line such as "RepeatedTimer(election, timeout: 150000000 ns, running)". The states are running, stopped
  /// and destroyed, followed by ", triggering" while on_trigger runs.
  std::string describe() const;

 private:
  class State;
  std::shared_ptr<State> state_;  // shared with the armed timeout, and with calls during which the owner may go
};

}  // namespace hwt
