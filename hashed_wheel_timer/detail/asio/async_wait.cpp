#include "hashed_wheel_timer/detail/asio/async_wait.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "hashed_wheel_timer/detail/refuse_nan.h"
#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/core/task_run.h"
#include "hashed_wheel_timer/internal/platform/clock.h"
#include "hashed_wheel_timer/internal/wheel/prefetch.h"

// Who ends a wait. Whoever cancels its timeout has it, as with every task, and so has the thread that runs the task or
// is told. But the latter is not the end of it: it still has to post the completion to a context that must not go
// meanwhile, and a timer that stops has the timeouts long before it tells them. Hence Task::state_, in the node:
//
//   from     to       by
//   Waiting  Ending   the thread that runs the task, or is told that it will not run; it completes the wait
//   Ending   Ended    the same, when it is at the wait and its context no more
//   Waiting  Ended    take(): the WaitGroup, the cancellation slot, discard() and close() of the registry
//   Waiting  Idle     take_for_next(): the WaitGroup, which completes the wait and leaves its timeout in the timer
//   Idle     Waiting  begin_again(): the WaitGroup, which has rescheduled the timeout for its next wait
//   Idle     Ended    retire(): whoever is through with the wait before, take(); and the thread that runs the task, or
//                     is told, which has nothing to complete
//
// Idle spares a wait that is put off what a timeout costs: a node to and fro, and its way through the inbox. The next
// wait begins there as follows, else with a timeout of its own. The deadline changes first, so that the task cannot end
// the wait by the old one: if it was about to run for that, reschedule() fails. Then the exchange to Waiting. If the
// task has run meanwhile, or retire() was called, that exchange fails and nobody has seen the wait; otherwise the task
// will find it. An idle timeout is pending, and so it is work for the loop of a LoopTimer; therefore it must go when
// nothing is begun: the wait before, whose completion is still in the queue of its context, takes it out when it goes.
//
// What keeps memory:
//   the node       the handle in the group, or in cancel_after's limit; that of the wait which has left it idle; and
//                  until the task has run, the timer. So a wait in the registry, which leaves it before it completes,
//                  has a node.
//   the wait       until it completes, whoever is to end it; then until its handler is called, its completion
//   the registry   its context, which in close() waits for those that are about to complete; as does a group that goes
//
// A group has its handle before the timeout is published: the wait may end, and its handler use the group, before
// start() has returned. The handle takes over the reference that start() gets from the timer. Until it has got that
// (returned_), nobody lets go of the handle.

namespace hwt::detail {

using internal::Node;
using internal::TaskScope;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

namespace {

// Until another thread is through some instructions, and the posting of a completion. It may be preempted.
constexpr std::chrono::microseconds kOtherIsBusy{50};

}  // namespace

/// The task of a wait's timeout. Trivial to destroy: the storage keeps it until the node is used again.
class AsyncWait::Task final : public TimerTask {
 public:
  Task(AsyncWait& wait, bool held) noexcept
      : wait_(&wait), listed_(wait.pending_.registry.load(std::memory_order_relaxed) != nullptr), returned_(!held) {}

  static Task& of(const Timeout& wait) noexcept { return static_cast<Task&>(Node::of(wait)->stored_task()); }
  Node& node() noexcept { return Node::around(*this); }

  void run(Timeout&) override { end(Result::Ok); }
  void will_not_run(NotRun why) override {
    // What is refused, start() completes: it knows the reason.
    if (why == NotRun::Refused) return;
    const TaskScope inside(node());
    end(Result::Stopped);
  }

  /// True: the caller is to end the wait, which it has alone. It needs a handle.
  bool take() noexcept {
    // Nobody else makes it Waiting. Ended: whoever retires it may not have cancelled the timeout yet.
    if (const State seen = state_.load(std::memory_order_relaxed); seen != State::Waiting) {
      if (seen == State::Idle) retire();
      return false;
    }
    // There may be another who takes it only if it is listed.
    if (internal::Core::cancel(node()) && !listed_) {
      state_.store(State::Ended, std::memory_order_relaxed);
      return true;
    }
    return change(State::Waiting, State::Ended);
  }
  AsyncWait& wait() noexcept { return *wait_; }

  /// The group: as take(), but the timeout stays for the next wait. Not if others may come to the wait by its slot.
  bool take_for_next() noexcept { return !listed_ && change(State::Waiting, State::Idle); }
  bool is_idle() const noexcept { return state_.load(std::memory_order_relaxed) == State::Idle; }
  /// The group: for another wait, if it is idle. True: that may have ended by now, and the group be gone.
  bool begin_again(AsyncWait& wait, When deadline) {
    if (!is_idle()) return false;
    wait_ = &wait;
    // In this order: a wait must not end by the deadline of the one before.
    return internal::Core::reschedule(node(), deadline) && change(State::Idle, State::Waiting);
  }
  /// Ends what is idle. Any thread that has a handle, and that made it idle or comes after who did.
  void retire() noexcept {
    // Asked first: most often the next wait has begun, and the exchange that would fail costs as much as one that does
    // not.
    if (is_idle() && change(State::Idle, State::Ended)) internal::Core::cancel(node());
  }

  /// start() needs its handle no more. release: pairs with the acquire in is_over().
  void note_returned() noexcept { returned_.store(true, std::memory_order_release); }

  /// No other thread is at the wait, its context, or in start(): the handle may go.
  bool is_over() const noexcept {
    return state_.load(std::memory_order_acquire) == State::Ended && returned_.load(std::memory_order_acquire);
  }
  /// Precondition: take() was called. Not for who is inside the task itself: no memory to post a completion, say, which
  /// then destroys the handler, and with it a group.
  void wait_until_over() noexcept {
    while (!is_over() && !TaskScope::is_inside(node())) std::this_thread::sleep_for(kOtherIsBusy);
  }

 private:
  enum class State : std::uint8_t { Waiting, Idle, Ending, Ended };

  // acquire: who has the wait sees all of it. release, also below: who finds it Ended comes after all that was done,
  // and who finds it Waiting sees which wait.
  bool change(State from, State to) noexcept {
    return state_.compare_exchange_strong(from, to, std::memory_order_acq_rel, std::memory_order_acquire);
  }

  /// Once: who gets it from stop() may run it by hand.
  void end(Result how) {
    State seen = state_.load(std::memory_order_relaxed);
    do {
      if (seen == State::Ending || seen == State::Ended) return;
      // Idle: there is nothing to complete. But the next wait may begin just now.
    } while (!state_.compare_exchange_weak(seen, seen == State::Idle ? State::Ended : State::Ending,
                                           std::memory_order_acq_rel, std::memory_order_relaxed));
    if (seen == State::Idle) return;
    struct Over {
      ~Over() { state.store(State::Ended, std::memory_order_release); }
      std::atomic<State>& state;
    } over{state_};
    wait_->finish(how);
  }

  AsyncWait* wait_;  // of who makes it Waiting, then of who ends that
  const bool listed_;
  std::atomic<bool> returned_;
  std::atomic<State> state_{State::Waiting};
};

struct AsyncWait::Source {
  AsyncWait& wait;
  Timeout* held;
};

/// Nobody else has the wait yet.
TimerTask* AsyncWait::build_task(void* storage, void* source) {
  static_assert(sizeof(Task) <= kTaskStorageSize && alignof(Task) <= kTaskStorageAlign);
  const Source& from = *static_cast<Source*>(source);
  Task* const task = ::new (storage) Task(from.wait, from.held != nullptr);
  from.wait.pending_.task = task;
  if (from.held != nullptr) *from.held = Node::adopt(&task->node());
  return task;
}

Scheduled AsyncWait::schedule(AsyncWait& wait, Timer& timer, When when, Timeout* held) {
  Source source{wait, held};
  return detail::schedule(timer, {&build_task, &source, TaskKind::Trivial}, when);
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
    leave();
    abandon();
    throw;
  }
  finish(refusal);
  return {};
}

Timeout AsyncWait::start(WaitRegistry& registry, Timer& timer, When when) {
  enter(registry);
  return start_by([&] {
    if (when.is_nan()) refuse_nan("async_wait_for: delay");
    return schedule(*this, timer, when, nullptr);
  });
}

void AsyncWait::retire(const Timeout& idle) noexcept { Task::of(idle).retire(); }

void AsyncWait::enter(WaitRegistry& registry) {
  pending_.registry.store(&registry, std::memory_order_relaxed);
  const std::lock_guard lock(registry.mutex_);
  registry.waits_.insert(pending_);
}

void AsyncWait::leave(int completing) noexcept {
  WaitRegistry* const registry = pending_.registry.load(std::memory_order_relaxed);
  if (registry == nullptr) return;
  const std::lock_guard lock(registry->mutex_);
  pending_.unlink();
  pending_.registry.store(nullptr, std::memory_order_relaxed);
  registry->completing_.fetch_add(completing, std::memory_order_relaxed);
}

/// By who has it.
void AsyncWait::finish(Result end) {
  WaitRegistry* const registry = pending_.registry.load(std::memory_order_relaxed);
  if (registry == nullptr) return complete(end);
  leave(1);
  struct Completed {
    ~Completed() { registry.completing_.fetch_sub(1, std::memory_order_release); }
    WaitRegistry& registry;
  } completed{*registry};
  complete(end);
}

void AsyncWait::cancel() {
  WaitRegistry* const registry = pending_.registry.load(std::memory_order_relaxed);
  if (registry == nullptr) return;
  Timeout wait;
  {
    const std::lock_guard lock(registry->mutex_);
    if (!pending_.linked()) return;
    Node& node = pending_.task->node();
    node.add_reference();
    wait = Node::adopt(&node);
  }
  if (Task::of(wait).take()) finish(Result::Stopped);
}

void AsyncWait::discard(const Timeout& wait) noexcept {
  if (!wait) return;
  Task& task = Task::of(wait);
  if (!task.take()) return;
  task.wait().leave();
  task.wait().abandon();
}

void WaitRegistry::close() noexcept {
  std::unique_lock lock(mutex_);
  const auto end = [&](const Timeout& wait) {
    // What is destroyed is the user's.
    lock.unlock();
    AsyncWait::Task& task = AsyncWait::Task::of(wait);
    if (task.take()) {
      task.wait().abandon();
    } else {
      task.wait_until_over();
    }
    lock.lock();
  };
  for (;;) {
    if (waits_.linked()) {
      auto& wait = static_cast<AsyncWait::Pending&>(*waits_.next);
      wait.unlink();
      Node& node = wait.task->node();
      node.add_reference();
      end(Node::adopt(&node));
    } else if (groups_.linked()) {
      auto& group = static_cast<WaitGroup&>(*groups_.next);
      if (group.waits_.empty()) {
        group.unlink();
        continue;
      }
      const Timeout wait = std::move(group.waits_.back());
      group.waits_.pop_back();
      end(wait);
    } else {
      break;
    }
  }
  while (completing_.load(std::memory_order_acquire) != 0) std::this_thread::sleep_for(kOtherIsBusy);
}

WaitGroup::WaitGroup(WaitRegistry& registry, Timer& timer) : registry_(registry), timer_(timer) {
  const std::lock_guard lock(registry_.mutex_);
  registry_.groups_.insert(*this);
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
    if (!stoppable && waits_.size() == 1 &&
        AsyncWait::Task::of(waits_[0]).begin_again(wait, deadline)) {
      return Scheduled();
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
  // The group has that reference. From here on it may be gone.
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
