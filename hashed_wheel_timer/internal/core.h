#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>

#include "hashed_wheel_timer/internal/diagnostics.h"
#include "hashed_wheel_timer/internal/node.h"
#include "hashed_wheel_timer/internal/producer.h"
#include "hashed_wheel_timer/internal/queues.h"
#include "hashed_wheel_timer/internal/sleeper.h"
#include "hashed_wheel_timer/options.h"
#include "hashed_wheel_timer/stats.h"

namespace hwt::internal {

/// The life of a timer. new_timeout() is open in Started only.
enum class Phase : std::uint8_t { Init, Starting, Started, Stopping, Stopped };

/// Why schedule() has refused.
enum class Refusal : std::uint8_t { None, Stopped, Full, NoMemory };

/// What all threads share of one timer: its nodes, queues, counters and phase. It outlives the timer for as long as
/// there are handles, and then deletes itself; the handles' operations need nothing else.
///
/// Ground rules. Four kinds of threads touch it:
///   producers  any thread in schedule(): its own Producer, the pending queue, `phase`, the sleeper's announcement
///   cancellers any thread in cancel():   its own Producer, the cancelled queue, the sleeper's announcement
///   the worker one thread at a time (Driver): takes from both queues; the counters under "the worker's"
///   the closer the one thread that ends the timer, when producers are done and the worker has finished
/// A node goes from hand to hand by Node::word (see State); the queues only carry its address.
class Core {
 public:
  /// Whose time deadlines are measured by: steady_clock's, or what is given to set_now().
  enum class Clock : std::uint8_t { Steady, Given };

  Core(Timer& timer, const Options& options, Clock clock = Clock::Steady);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  std::uint64_t id() const noexcept { return id_; }
  ProducerSet& producers() noexcept { return producers_; }

  // Producers.

  struct Refused {
    Refusal why;
    std::int64_t limit;  // for the text of Refusal::Full

    /// Throws what Timer::new_timeout() promises.
    [[noreturn]] void raise() const;
  };
  /// Precondition: phase was Started. Throws what building the task throws. Null: `refused` says why, and the timer,
  /// and this, may be gone with the task.
  Timeout schedule(const detail::TaskSource& task, std::int64_t now, std::int64_t delay, Refused& refused);

  // Handles.

  /// Timeout::cancel() and Timeout::reschedule() of a node of any core.
  static bool cancel(Node& node) noexcept;
  static bool reschedule(Node& node, std::int64_t delay);

  Timer* timer() const noexcept { return timer_.load(std::memory_order_acquire); }
  /// The timer is about to go. Waits for each TimerInUse; but not in a forked child, where no other thread is, and the
  /// lock may stay with one that was not copied.
  void forget_timer(bool in_forked_child = false) noexcept {
    std::unique_lock lock(timer_in_use_, std::defer_lock);
    if (!in_forked_child) lock.lock();
    timer_.store(nullptr, std::memory_order_release);
  }

  /// Keeps the timer from going, for a thread of which its destructor does not know. Nothing of the user's may be
  /// called meanwhile: it might destroy the timer.
  class TimerInUse {
   public:
    explicit TimerInUse(Core& core) : lock_(core.timer_in_use_), timer_(core.timer()) {}
    Timer* get() const noexcept { return timer_; }  // null: it is gone

   private:
    const std::lock_guard<std::mutex> lock_;
    Timer* const timer_;
  };

  // The clock, in nanoseconds. Any thread; one at a time sets it.

  std::int64_t now() const noexcept {
    return clock_ == Clock::Steady ? steady_now() : given_now_.load(std::memory_order_relaxed);
  }
  void set_now(std::int64_t now) noexcept { given_now_.store(now, std::memory_order_relaxed); }

  // Counters. Any thread.

  std::int64_t pending() const noexcept;
  TimerStats stats() const noexcept;

  // Tasks. The worker, or where the executor runs them.

  void report_error(const Timeout& timeout) noexcept;  // in a catch block

  // The worker's.

  /// A producer asks the worker to collect early after so many nodes of its own: at a long tick the nodes of all the
  /// timeouts that were cancelled meanwhile would pile up and fall out of the cache. It also bounds what they occupy.
  static constexpr std::uint32_t kCollectEvery = 16384;

  PendingQueue pending_queue;
  NodeQueue cancelled_queue;
  NodeStack cancelled_overflow;
  /// On lines of its own, with phase: every producer reads both.
  alignas(kCacheLine) Sleeper sleeper;

  /// Started is stored with release when start_time is set, and read with acquire. The order against the pending queue
  /// when the timer stops is the asymmetric fence's.
  std::atomic<Phase> phase{Phase::Init};
  std::int64_t start_time = 0;  // nanoseconds of the timer's clock; fixed before phase is Started

  bool running() const noexcept { return phase.load(std::memory_order_relaxed) == Phase::Started; }
  void count_expired() noexcept {
    expired_.add(1);
    release_admission();
  }
  void count_unprocessed() noexcept {
    unprocessed_.add(1);
    release_admission();
  }
  void count_tick() noexcept { ticks_.add(1); }
  void note_lag(std::int64_t lag) noexcept;
  void count_wakeup() noexcept { wakeups_.add(1); }

  // The closer.

  /// The timer is gone and the worker has finished: drops what is left in the queues. Deletes the core, now or when the
  /// last handle goes.
  void close() noexcept;
  /// A node has come back after close().
  void returned_after_close(std::int64_t nodes) noexcept;

 private:
  ~Core() = default;

  void count_timeouts(TimerStats& stats) const noexcept;

  // Bias of out_after_close_ while close() still counts, so that it cannot reach zero early.
  static constexpr std::int64_t kCounting = std::int64_t{1} << 62;

  bool limited() const noexcept { return max_pending_ > 0; }
  bool admit() noexcept;
  void release_admission() noexcept {
    if (limited()) admitted_.fetch_sub(1, std::memory_order_acq_rel);
  }
  /// What has become of a node: the references to it that the caller now has. No node where none was built. Small
  /// enough to come back in registers.
  struct Offer {
    Node* node;
    Refusal refusal;
    std::uint8_t references;
  };
  Offer offer(const detail::TaskSource& task, std::int64_t now, std::int64_t delay);
  Offer offer(Producer& producer, const detail::TaskSource& task, std::int64_t now, std::int64_t delay);
  void count_cancelled(Producer* producer, Node& node, std::uint64_t left) noexcept;
  bool move(Node& node, std::int64_t deadline);
  bool tell_of_move(Node& node) noexcept;
  void queue_cancelled(Producer* producer, Node& node) noexcept;
  void note_queued(Producer& producer) noexcept;
  void wake_for_cancelled_hook() noexcept;

  std::atomic<Timer*> timer_;  // release when it goes, acquire when it is handed out
  std::mutex timer_in_use_;    // held when timer_ is written; an order of locks begins with it
  const Clock clock_;
  const std::int64_t max_pending_;
  const std::function<void(std::exception_ptr, const Timeout&)> on_task_error_;
  const std::uint64_t id_;
  TaskErrorLog error_log_;
  ProducerSet producers_{pending_queue};

  // The exact number of pending timeouts, when there is a limit. On a line of its own: every producer writes it.
  alignas(kCacheLine) std::atomic<std::int64_t> admitted_{0};

  // Written by the worker alone (task_errors_ by whoever ran the task, cancelled_without_producer_ by whoever had no
  // memory for one).
  alignas(kCacheLine) OwnedCounter expired_;
  OwnedCounter unprocessed_;
  OwnedCounter ticks_;
  OwnedCounter wakeups_;
  std::atomic<std::int64_t> last_lag_{0};
  std::atomic<std::int64_t> max_lag_{0};
  std::atomic<std::int64_t> task_errors_{0};
  std::atomic<std::int64_t> cancelled_without_producer_{0};

  // relaxed: the time orders nothing; a deadline that is read with the node is.
  std::atomic<std::int64_t> given_now_{0};

  // acq_rel on every change: who takes it to zero has seen all that the others did with the core.
  std::atomic<std::int64_t> out_after_close_{kCounting};
};

}  // namespace hwt::internal
