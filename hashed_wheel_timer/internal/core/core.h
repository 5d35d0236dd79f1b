// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <utility>

#include "hashed_wheel_timer/detail/scheduled.h"
#include "hashed_wheel_timer/histogram.h"
#include "hashed_wheel_timer/internal/core/admission.h"
#include "hashed_wheel_timer/internal/core/counters.h"
#include "hashed_wheel_timer/internal/core/lifecycle.h"
#include "hashed_wheel_timer/internal/core/tick_grid.h"
#include "hashed_wheel_timer/internal/handover/inbox.h"
#include "hashed_wheel_timer/internal/handover/producer.h"
#include "hashed_wheel_timer/internal/memory/depot.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/platform/sleeper.h"
#include "hashed_wheel_timer/internal/platform/waiting.h"
#include "hashed_wheel_timer/internal/report/log.h"
#include "hashed_wheel_timer/internal/report/probes.h"
#include "hashed_wheel_timer/internal/time/clock.h"
#include "hashed_wheel_timer/internal/time/request_clock.h"
#include "hashed_wheel_timer/leeway.h"
#include "hashed_wheel_timer/options.h"
#include "hashed_wheel_timer/origin.h"
#include "hashed_wheel_timer/stats.h"
#include "hashed_wheel_timer/timeout_id.h"

namespace hwt::internal {

/// The part of one timer that all threads share. It outlives the timer while there are handles, and then deletes
/// itself. Operations on handles need nothing else.
///
/// Ground rules. Five kinds of threads touch it:
///   producers  any thread in schedule(): its own Producer, the inbox, the admission, the phase, the announced sleep
///   cancellers any thread in cancel() or reschedule(): its own Producer, the inbox, the admission, the announced sleep
///   readers    any thread in stats(), pending(), is_live() or find(): the counters, the admission, the words of nodes
///   the worker one thread at a time (Worker): takes from the inbox; the admission, the worker's counters, its sleep
///   the closer the one thread that destroys the timer, when producers are done and the worker has finished
/// A node goes from hand to hand by Node::word (see NodeState).
class Core final {
 public:
  /// The clock that deadlines are measured by.
  enum class Clock : std::uint8_t {
    Cycles,  // steady_clock; delays are measured by the cycle counter if it is safe
    Steady,  // steady_clock
    Given,   // the time that set_now() received
  };

  /// Makes the core of a timer. Its creator calls close(), which deletes it. Throws std::bad_alloc, and
  /// std::system_error if the process has no thread key left or, on Windows, no handle. Passes on exceptions of copying
  /// on_task_error.
  Core(Timer& timer, const Options& options, Clock clock = Clock::Cycles);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  std::uint64_t id() const noexcept { return id_; }

  // Its parts. Each says which threads may use it.

  Lifecycle& lifecycle() noexcept { return lifecycle_; }
  Counters& counters() noexcept { return counters_; }
  Inbox& inbox() noexcept { return inbox_; }
  Sleeper& sleeper() noexcept { return sleeper_; }
  ProducerSet& producers() noexcept { return producers_; }
  Depot& depot() noexcept { return depot_; }

  // Producers.

  /// Timer::schedule().
  detail::Scheduled schedule(const detail::TaskSource& task, When when);
  /// Schedules after schedule() has returned Untraced.
  detail::Scheduled schedule_traced(const detail::TaskSource& task, When when, const Origin& origin);
  /// Options::trace_origins.
  bool traces_origins() const noexcept { return depot_.traces_origins(); }

  /// Returns the deadline that a timeout with this leeway gets. Returns `when` unless the timer is started: before that
  /// there is no grid, and afterwards no timeout. Preconditions: neither is a NaN.
  When rounded(When when, Leeway leeway) const noexcept {
    if (!lifecycle_.started()) return when;
    const std::int64_t deadline = when.deadline([this] { return now(); });
    const std::int64_t latest = deadline_after(deadline, std::int64_t{leeway.duration().count()});
    const TickGrid grid{lifecycle_.start_time(), tick_duration_};
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(grid.roundest(deadline, latest)));
  }

  /// Tells the worker that tasks may have executors of their own. A producer calls it before it schedules such a task.
  /// relaxed: the worker sees the flag at the latest when it takes the timeout's entry.
  void expect_executors() noexcept {
    if (!expects_executors()) own_executors_.store(true, std::memory_order_relaxed);
  }
  bool expects_executors() const noexcept { return own_executors_.load(std::memory_order_relaxed); }

  // Ids. `id` may be any number.

  /// Timer::cancel().
  CancelResult cancel(TimeoutId id) noexcept;
  /// Timer::cancel_and_wait().
  CancelResult cancel_and_wait(TimeoutId id) noexcept;
  /// Returns whether the timeout is pending, its task runs, an executor has the task, or a thread is destroying the
  /// callable. A moment later that may have changed.
  bool is_live(TimeoutId id) const noexcept {
    const NodeName name(id.value());
    const Node* const node = SlabDirectory::find(name.index(), id_);
    return node != nullptr && node->is_live(name.life());
  }
  /// Timer::find().
  Timeout find(TimeoutId id) noexcept;

  // Handles.

  /// Timeout::cancel() of a node of any core.
  static bool cancel(Node& node) noexcept;
  /// Timeout::reschedule() of a node of any core.
  static bool reschedule(Node& node, When when);

  Timer* timer() const noexcept { return timer_.load(std::memory_order_acquire); }
  /// The timer is about to go. Waits for each TimerInUse.
  void forget_timer() noexcept {
    timer_.store(nullptr, std::memory_order_release);
    std::uint32_t seen = timer_uses_.fetch_or(kTimerGoes, std::memory_order_acq_rel) | kTimerGoes;
    for (; seen != kTimerGoes; seen = timer_uses_.load(std::memory_order_acquire)) {
      await_change(timer_uses_, seen);
    }
  }
  /// The timer is about to go, in a forked child. Does not wait, because a TimerInUse may be that of a thread that was
  /// not copied.
  void forget_timer_in_forked_child() noexcept { timer_.store(nullptr, std::memory_order_release); }

  /// Keeps the timer alive for a thread that the timer's destructor does not know of. Waits for no thread. The thread
  /// must call no user code meanwhile, because that might destroy the timer.
  class TimerInUse {
   public:
    explicit TimerInUse(Core& core) noexcept
        : core_(core),
          timer_((core.timer_uses_.fetch_add(1, std::memory_order_acquire) & kTimerGoes) == 0 ? core.timer()
                                                                                              : nullptr) {}
    ~TimerInUse() {
      if (core_.timer_uses_.fetch_sub(1, std::memory_order_release) == kTimerGoes + 1)
        announce_change(core_.timer_uses_);
    }
    TimerInUse(const TimerInUse&) = delete;
    TimerInUse& operator=(const TimerInUse&) = delete;

    Timer* get() const noexcept { return timer_; }  // null: it is gone

   private:
    Core& core_;  // kept by a handle of the same thread
    Timer* const timer_;
  };

  // The clock, in nanoseconds. Any thread; one at a time sets it.

  bool reads_steady_clock() const noexcept { return clock_ != Clock::Given; }
  std::int64_t now() const noexcept {
    return clock_ == Clock::Given ? given_now_.load(std::memory_order_relaxed) : steady_now();
  }
  CycleRate& cycles() noexcept { return cycles_; }
  void set_now(std::int64_t now) noexcept { given_now_.store(now, std::memory_order_relaxed); }

  // Counters. Any thread.

  /// Returns whether pending() is exact. Then the timer's driver is called when it becomes zero.
  bool counts_pending() const noexcept { return admission_.limited(); }
  /// Returns the number of pending timeouts. After stop() that is 0, although the counters still hold timeouts that
  /// their threads are taking back: see unpublish().
  std::int64_t pending() const noexcept {
    if (lifecycle_.phase() == Phase::Stopped) return 0;
    return admission_.limited() ? admission_.pending() : counters_.read_timeouts(producers_).pending;
  }
  TimerStats stats() const noexcept {
    TimerStats stats = counters_.read(producers_, now());
    if (lifecycle_.phase() == Phase::Stopped) stats.scheduled -= std::exchange(stats.pending, 0);  // as in pending()
    stats.counts_cycles = cycles_.window() != 0;
    // A forked child has no worker that could be at anything.
    if (lifecycle_.is_of_another_process()) stats.running_for = std::chrono::nanoseconds(0);
    return stats;
  }
  LatencyHistogram lateness() const noexcept { return counters_.lateness.snapshot(); }

  // Tasks. Any thread that calls code of a task; for will_not_run() that may be a producer, or a thread in stop().

  /// Reports the current exception. Called in a catch block. `origin`: the source of the exception, for the log.
  void report_error(const Timeout& timeout, const char* origin = "a task") noexcept;

  // The worker's.

  bool running() const noexcept { return lifecycle_.running(); }
  /// Notes that a task, or other code of the user on the worker, has destroyed the timer. Only the worker reads this.
  void note_ended_on_worker() noexcept { ended_on_worker_ = true; }
  bool ended_on_worker() const noexcept { return ended_on_worker_; }
  /// Counts the end of a pending timeout in `counter`, and gives its place below the limit to others.
  void count_end(OwnedCounter& counter) noexcept {
    counter.add(1);
    admission_.release();
  }

  // The closer.

  /// The timer is gone and the worker has finished. Deletes the core, now or when the last handle goes. No thread takes
  /// the entries that are still in the inbox. They are of withdrawn timeouts, or they are recheck requests for nodes
  /// that have left the wheel. A late cancel() may still add some.
  void close() noexcept { depot_.close(); }

 private:
  ~Core() = default;

  static constexpr std::uint32_t kTimerGoes = std::uint32_t{1} << 31;

  detail::Scheduled schedule_plain(const detail::TaskSource& task, When when, Producer& mine);
  /// Schedules if the timer has a limit, or if the thread has used no timer or another one last. In the second case
  /// `mine` is null. Returns Untraced if the timer traces origins.
  detail::Scheduled schedule_any(const detail::TaskSource& task, When when, Producer* mine);
  /// `producer` is null if there was no memory for one.
  detail::Scheduled offer_any(Producer* producer, const detail::TaskSource& task, std::int64_t deadline,
                              std::uint64_t trace = 0);
  /// `kPlain`: the timer has no limit and traces no origins, like most timers. Then no code checks for them.
  template <bool kPlain>
  detail::Scheduled offer_as(Producer& producer, const detail::TaskSource& task, std::int64_t deadline,
                             std::uint64_t trace = 0);
  detail::Scheduled tell_worker(Producer& producer, NodeName name, bool named, std::int64_t deadline) noexcept;
  detail::Scheduled unpublish(Producer& producer, NodeName name, bool named, detail::Result why) noexcept;
  detail::Scheduled refuse(Node* node, detail::Result why, std::uint64_t references = 0) noexcept;
  static detail::Scheduled refuse_in(Phase phase) noexcept;
  /// Returns the present time, at which a delay begins. `mine`: the calling thread's producer, whose clock may estimate
  /// the time by the cycle counter; or null, to call now().
  std::int64_t begin_of_delay(Producer* mine) noexcept {
    if (clock_ == Clock::Cycles && mine != nullptr) [[likely]]
      return mine->clock.now(cycles_);
    return now();
  }
  Producer* find_producer() const noexcept;
  CancelResult finish_withdrawal(Producer& mine, NodeName name) noexcept;
  void release_cancelled(NodeName name) noexcept;
  NodeName name_of(const Node& node, std::uint32_t life) const noexcept;
  bool cancel_of_other(Producer& mine, Node& node) noexcept;
  bool cancel_callable(Producer& mine, Node& node) noexcept;
  bool cancel_any(Node& node) noexcept;
  CancelResult cancel_any(Node& node, NodeName name) noexcept;
  void count_dead(Producer& canceller) noexcept;
  /// Inbox::ask().
  void ask(Inbox::Request request) noexcept;
  void finish_without_memory(Node& node, std::uint64_t before, NodeName name) noexcept;
  void free_from_wheel(Producer* producer, Node& node, const Node::Cancel& cancel, NodeName name) noexcept;
  void finish_cancel(Producer* producer, Node& node, const Node::Cancel& cancel, bool own, NodeName name) noexcept;
  /// Makes room for a recheck request of the calling thread. Returns false without memory. The thread runs no code of
  /// the user before put_recheck(), because that might use the room.
  bool reserve_recheck(ProducerLease& lease) noexcept;
  /// Enqueues a recheck request and lists its place. Precondition: reserve_recheck().
  void put_recheck(Producer& producer, Node& node) noexcept;
  /// Calls the worker if this many requests have come. May call the user's on_earlier(), so it comes last.
  void call_for_rechecks(Producer& producer, std::size_t many) noexcept;
  bool move(Node& node, std::int64_t deadline);
  bool expired_at_or_after(std::int64_t deadline, std::uint64_t word) const noexcept;
  void wake_for_cancelled_hook() noexcept;
  void wake_for_none_pending() noexcept;

  std::atomic<Timer*> timer_;  // release when it goes, acquire when it is handed out
  // How many TimerInUse there are, and kTimerGoes. release when a use ends, acquire by the thread that waits for it.
  std::atomic<std::uint32_t> timer_uses_{0};
  CycleRate cycles_;
  const Clock clock_;
  const std::function<void(std::exception_ptr, const Timeout&)> on_task_error_;
  const std::uint64_t id_;
  const bool plain_;  // no limit and no origins
  const std::int64_t tick_duration_;
  // If the worker's sleep ends within this time plus a tick, that is soon enough for the cancelled() of a TimerTask.
  const std::int64_t hook_patience_;
  LinePerSecond error_log_;
  bool ended_on_worker_ = false;  // the worker's alone
  // relaxed: the time orders nothing. Node::word orders the deadlines that are computed from it.
  std::atomic<std::int64_t> given_now_{0};
  std::atomic<bool> own_executors_{false};

  Inbox inbox_;
  ProducerSet producers_{id_, depot_, inbox_, sleeper_};
  Depot depot_;
  Admission admission_;
  // Side by side on lines of their own: every producer reads both.
  alignas(kCacheLine) Sleeper sleeper_;
  Lifecycle lifecycle_;
  Counters counters_;
};

/// The deleter of the std::unique_ptr by which an engine owns its core.
struct CloseCore {
  void operator()(Core* core) const noexcept { core->close(); }
};

}  // namespace hwt::internal
