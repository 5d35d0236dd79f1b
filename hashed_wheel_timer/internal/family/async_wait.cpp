// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/detail/asio/async_wait.h"

#include <memory>
#include <new>
#include <system_error>
#include <thread>

#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/core/task_run.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/wheel/prefetch.h"

// Exactly one thread completes a wait: the one that cancels its timeout, runs its task, or is notified that the task
// will not run. The timeout's own state does not suffice to decide. A thread in the task takes some time to post the
// completion to the execution context, which must exist until then. And a timer that stops claims its timeouts long
// before it notifies them. Therefore Task::state_, in the node, says how far the wait is:
//
//   from     to       by
//   Waiting  Ending   end(): the thread that runs the task, or is notified; it completes the wait
//   Waiting  Ending   discard(): the thread that destroys the handler of a wait without calling it
//   Ending   Ended    the same thread, when it no longer uses the wait and its context
//   Waiting  Ended    take(): the WaitGroup, the cancellation slot, or close() of the registry
//   Waiting  Idle     take_for_next(): the WaitGroup, which completes the wait and leaves its timeout in the timer
//   Idle     Waiting  begin_again(): the WaitGroup, which has rescheduled the timeout for its next wait
//   Idle     Ended    retire(): the destructor of the previous wait, or take()
//   Idle     Ended    end(): the thread that runs the task, or is notified; it has nothing to complete
//
// Idle makes it cheap to replace a wait by one with another expiry. The next wait needs no new node, and for a later
// deadline no recheck request. It uses the idle timeout in two steps. First begin_again() changes the deadline, so that
// the task cannot end the new wait at the old deadline. Then it exchanges Idle for Waiting, so that the task finds the
// new wait. The first step fails if the task was about to run for the old deadline. The second fails if the task has
// run meanwhile, or retire() was called. After a failure no other thread has seen the new wait, and it gets a timeout
// of its own.
//
// An idle timeout is pending, so it counts as work for the loop of a LoopTimer. It must not stay if no wait follows. So
// the previous wait, whose completion is still in the queue of its context, retires it in its destructor.
//
// These keep memory alive:
//   the node       the handle in the group or in cancel_after's limit, the handle of the wait that left it idle, and
//                  the timer until the task has run. A wait leaves the registry before it ends, so each wait in the
//                  registry has a node.
//   the wait       the thread that will end it; after that its completion, until the handler is called
//   the registry   its context, whose close() waits for threads that are ending a wait; so does ~WaitGroup()
//
// A group stores its handle before the timeout is published, because the wait may end, and its handler may use the
// group, before start() has returned. The handle takes over the reference that start() gets from the timer. Then
// start() sets returned_. Until then no thread drops the handle.

namespace hwt::detail {

using internal::Node;
using internal::TaskScope;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

namespace {

// How long to sleep while another thread finishes some instructions, and posts a completion or destroys a handler.
// It may be preempted.
constexpr std::chrono::microseconds kOtherIsBusy{50};

}  // namespace

/// The task of the timeout of a wait. No thread destroys it (TaskKind::Trivial), so it stays valid until the node is
/// reused.
class AsyncWait::Task final : public TimerTask {
 public:
  Task(AsyncWait& wait, bool held) noexcept
      : wait_(&wait), listed_(wait.pending_.registry.load(std::memory_order_relaxed) != nullptr), returned_(!held) {}

  static Task& of(const Timeout& wait) noexcept { return static_cast<Task&>(Node::of(wait)->stored_task()); }
  Node& node() noexcept { return Node::around(*this); }

  void run(Timeout&) override { end(Result::Ok); }
  void hwt_will_not_run(NotRun why) override {
    // start() completes a wait that was refused, because it knows the reason.
    if (why == NotRun::Refused) return;
    const TaskScope inside(node());
    end(Result::Stopped);
  }

  /// Claims the wait. If it returns true, the caller must end the wait, and no other thread uses it. Needs a handle.
  bool take() noexcept {
    // No other thread makes it Waiting. If it is Ended, the cancel() below could still succeed, because retire() sets
    // Ended before it cancels the timeout.
    if (const State seen = state_.load(std::memory_order_relaxed); seen != State::Waiting) {
      if (seen == State::Idle) retire();
      return false;
    }
    // Only a listed wait can be claimed by another thread meanwhile.
    if (internal::Core::cancel(node()) && !listed_) {
      state_.store(State::Ended, std::memory_order_relaxed);
      return true;
    }
    return change(State::Waiting, State::Ended);
  }
  AsyncWait& wait() noexcept { return *wait_; }
  /// Destroys the handler of a wait that another thread does not end. close() of the registry waits meanwhile, because
  /// the caller may be on another context.
  void discard() noexcept {
    internal::Core::cancel(node());
    if (!change(State::Waiting, State::Ending)) return;
    wait().leave([&ended = wait()] { ended.abandon(); });
    // release: pairs with the acquire of wait_until_over().
    state_.store(State::Ended, std::memory_order_release);
  }

  /// Claims the wait for the group, and leaves the timeout pending for the next wait. Fails for a wait with a
  /// cancellation slot, because another thread may find that one.
  bool take_for_next() noexcept { return !listed_ && change(State::Waiting, State::Idle); }
  bool is_idle() const noexcept { return state_.load(std::memory_order_relaxed) == State::Idle; }
  /// Uses an idle timeout for the next wait of the group. If it returns true, that wait may have ended already, and its
  /// handler may have destroyed the group.
  bool begin_again(AsyncWait& wait, When deadline) {
    if (!is_idle()) return false;
    wait_ = &wait;
    // In this order, so that a wait cannot end at the deadline of the previous one.
    return internal::Core::reschedule(node(), deadline) && change(State::Idle, State::Waiting);
  }
  /// Ends an idle timeout. Called by a thread that has a handle, and that made it idle or is ordered after that.
  void retire() noexcept {
    // Reads first, because most often the next wait has begun, and an exchange that fails costs as much as any other.
    if (is_idle() && change(State::Idle, State::Ended)) internal::Core::cancel(node());
  }

  /// start() no longer needs its handle. release: pairs with the acquire in is_over().
  void note_returned() noexcept { returned_.store(true, std::memory_order_release); }

  /// Returns whether no other thread uses the wait or its context, or is in start(). Then the handle may be dropped.
  bool is_over() const noexcept {
    return state_.load(std::memory_order_acquire) == State::Ended && returned_.load(std::memory_order_acquire);
  }
  /// Precondition: take() was called. Returns at once inside the task itself. (Without memory for a completion the task
  /// destroys the handler, and with it possibly a group.)
  void wait_until_over() noexcept {
    while (!is_over() && !TaskScope::is_inside(node())) std::this_thread::sleep_for(kOtherIsBusy);
  }

 private:
  enum class State : std::uint8_t { Waiting, Idle, Ending, Ended };

  // acquire: the thread that claims the wait sees all of it. release, also in Over: a thread that finds Ended is
  // ordered after the completion. A thread that finds Waiting sees wait_.
  bool change(State from, State to) noexcept {
    return state_.compare_exchange_strong(from, to, std::memory_order_acq_rel, std::memory_order_acquire);
  }

  /// Takes effect only once. It may be called again, because a program may run by hand a timeout that stop() returned.
  void end(Result how) {
    State seen = state_.load(std::memory_order_relaxed);
    do {
      if (seen == State::Ending || seen == State::Ended) return;
      // If it is Idle, there is nothing to complete. But the next wait may begin at this moment.
    } while (!state_.compare_exchange_weak(seen, seen == State::Idle ? State::Ended : State::Ending,
                                           std::memory_order_acq_rel, std::memory_order_relaxed));
    if (seen == State::Idle) return;
    struct Over {
      ~Over() { state.store(State::Ended, std::memory_order_release); }
      std::atomic<State>& state;
    } over{state_};
    wait_->finish(how);
  }

  AsyncWait* wait_;  // written by the thread that makes it Waiting, read by the thread that ends that wait
  const bool listed_;
  std::atomic<bool> returned_;
  std::atomic<State> state_{State::Waiting};
};

struct AsyncWait::Source {
  AsyncWait& wait;
  Timeout* held;
};

/// Builds the task in the node, before another thread can reach the wait.
TimerTask* AsyncWait::build_task(void* storage, void* source) {
  static_assert(sizeof(Task) <= kKeptStorageSize && alignof(Task) <= kTaskStorageAlign);  // used after a cancel
  const Source& from = *static_cast<Source*>(source);
  Task* const task = ::new (storage) Task(from.wait, from.held != nullptr);
  from.wait.pending_.task = task;
  if (from.held != nullptr) *from.held = Node::adopt(&task->node());
  return task;
}

Scheduled AsyncWait::schedule(AsyncWait& wait, Timer& timer, When when, Timeout* held) {
  Source source{wait, held};
  return schedule_named(timer, {&build_task, &source, TaskKind::Trivial}, when, "hwt::async_wait");
}

template <class Schedule>
Timeout AsyncWait::start_by(Schedule schedule) {
  Result refusal{};
  try {
    const Scheduled scheduled = schedule();
    if (scheduled.result() == Result::Ok) return Node::adopt(scheduled.node);
    refusal = scheduled.result();
  } catch (const std::bad_alloc&) {
    refusal = Result::NoMemory;
  } catch (const std::system_error&) {
    refusal = Result::NoThread;
  } catch (const IllegalState&) {  // a thread factory that returned none
    refusal = Result::NoThread;
  } catch (...) {
    leave([] {});
    abandon();  // without holding close() back, because the handler may own the context
    throw;
  }
  finish(refusal);
  return {};
}

Timeout AsyncWait::start(WaitRegistry& registry, Timer& timer, When when) {
  enter(registry);
  return start_by([&] { return schedule(*this, timer, when, nullptr); });
}

void AsyncWait::retire(const Timeout& idle) noexcept { Task::of(idle).retire(); }

void AsyncWait::enter(WaitRegistry& registry) {
  pending_.registry.store(&registry, std::memory_order_relaxed);
  const std::lock_guard lock(registry.mutex_);
  registry.waits_.insert(pending_);
}

/// Takes the wait out of its registry and calls end(), which ends it. close() of the registry waits for that. Called by
/// the thread that claimed the wait.
template <class End>
void AsyncWait::leave(End end) {
  WaitRegistry* const registry = pending_.registry.load(std::memory_order_relaxed);
  if (registry == nullptr) return end();
  {
    const std::lock_guard lock(registry->mutex_);
    pending_.unlink();
    pending_.registry.store(nullptr, std::memory_order_relaxed);
    registry->ending_.fetch_add(1, std::memory_order_relaxed);
  }
  struct Ended {
    ~Ended() { registry.ending_.fetch_sub(1, std::memory_order_release); }
    WaitRegistry& registry;
  } ended{*registry};
  end();
}

void AsyncWait::finish(Result end) {
  leave([this, end] { complete(end); });
}

void AsyncWait::cancel() {
  WaitRegistry* const registry = pending_.registry.load(std::memory_order_relaxed);
  if (registry == nullptr) return;
  Timeout wait;
  {
    const std::lock_guard lock(registry->mutex_);
    if (!pending_.linked()) return;
    wait = handle_of(pending_.task->node());
  }
  if (Task::of(wait).take()) finish(Result::Stopped);
}

void AsyncWait::discard(const Timeout& wait) noexcept {
  if (wait) Task::of(wait).discard();
}

void WaitRegistry::close() noexcept {
  std::unique_lock lock(mutex_);
  const auto end = [&](Timeout wait) {
    // Without the lock, because it destroys handlers of the user, and dropping the handle may call on_earlier().
    lock.unlock();
    AsyncWait::Task& task = AsyncWait::Task::of(wait);
    if (task.take()) {
      task.wait().abandon();
    } else {
      task.wait_until_over();
    }
    wait = Timeout();
    lock.lock();
  };
  for (;;) {
    if (waits_.linked()) {
      auto& wait = static_cast<AsyncWait::Pending&>(*waits_.next);
      wait.unlink();
      end(handle_of(wait.task->node()));
    } else if (groups_.linked()) {
      auto& group = static_cast<WaitGroup&>(*groups_.next);
      if (group.waits_.empty()) {
        group.unlink();
        continue;
      }
      Timeout wait = std::move(group.waits_.back());
      group.waits_.pop_back();
      end(std::move(wait));
    } else {
      break;
    }
  }
  // Without the lock, because a handler that another thread destroys may own a WaitGroup of this registry.
  lock.unlock();
  while (ending_.load(std::memory_order_acquire) != 0) std::this_thread::sleep_for(kOtherIsBusy);
}

WaitGroup::WaitGroup(WaitRegistry& registry, Timer& timer) : registry_(registry), timer_(timer) {
  const std::lock_guard lock(registry_.mutex_);
  registry_.groups_.insert(*this);
}

WaitGroup::WaitGroup(WaitGroup&& other) noexcept : WaitGroup(other.registry_, other.timer_) {
  waits_.swap(other.waits_);
}

WaitGroup& WaitGroup::operator=(WaitGroup&& other) noexcept {
  if (this == &other) return *this;
  std::destroy_at(this);
  return *std::construct_at(this, std::move(other));
}

WaitGroup::~WaitGroup() {
  cancel(waits_.size());
  for (const Timeout& wait : waits_) AsyncWait::Task::of(wait).wait_until_over();
  const std::lock_guard lock(registry_.mutex_);
  unlink();
}

void WaitGroup::start(AsyncWait& wait, steady_clock::time_point deadline, bool stoppable) {
  if (stoppable) wait.enter(registry_);
  Timeout returned = wait.start_by([&] {
    // Uses an idle timeout only if the group has no other one, which is the usual case. A wait with a slot cannot use
    // it: cancel() finds the task by pending_.task, and such a task must have listed_ set. build_task() does both.
    if (!stoppable && waits_.size() == 1 && AsyncWait::Task::of(waits_[0]).begin_again(wait, deadline)) {
      return Scheduled();  // Ok, without a reference: the group has the handle already
    }
    forget_ended();
    Timeout& held = waits_.emplace_back();
    const auto forget_held = [&] {
      Node::disown(held);  // it has no reference of its own
      waits_.pop_back();
    };
    try {
      const Scheduled scheduled = AsyncWait::schedule(wait, timer_, deadline, &held);
      if (scheduled.result() != Result::Ok) forget_held();
      return scheduled;
    } catch (...) {
      forget_held();
      throw;
    }
  });
  // The group owns that reference. From here on it may be destroyed.
  if (returned) static_cast<AsyncWait::Task&>(Node::disown(returned)->stored_task()).note_returned();
}

void WaitGroup::forget_ended() noexcept {
  std::erase_if(waits_, [](const Timeout& wait) { return AsyncWait::Task::of(wait).is_over(); });
}

std::size_t WaitGroup::cancel(std::size_t most) {
  std::size_t cancelled = 0;
  for (std::size_t i = 0; i != waits_.size() && cancelled != most; ++i) {
    AsyncWait::Task& task = AsyncWait::Task::of(waits_[i]);
    if (!task.take()) continue;
    ++cancelled;
    task.wait().finish(Result::Stopped);
  }
  forget_ended();
  return cancelled;
}

void WaitGroup::prefetch() const noexcept {
  if (!waits_.empty()) internal::prefetch_to_write(Node::of(waits_.front()));
}

std::size_t WaitGroup::cancel_for_next() {
  if (waits_.size() == 1) {
    AsyncWait::Task& task = AsyncWait::Task::of(waits_[0]);
    if (task.is_idle()) return 0;
    if (task.take_for_next()) {
      AsyncWait& wait = task.wait();
      wait.idle_ = waits_[0];
      wait.finish(Result::Stopped);
      return 1;
    }
  }
  return cancel(waits_.size());
}

}  // namespace hwt::detail
