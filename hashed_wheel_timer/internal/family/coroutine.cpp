// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/coroutine.h"

#include "hashed_wheel_timer/detail/refuse_nan.h"
#include "hashed_wheel_timer/internal/core/task_run.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/time/clock.h"

// Which thread resumes a coroutine. The frame has no state word of its own: Node::word decides, as for every task. One
// thread becomes the owner of the frame: it runs the waker, is told that the waker will not run, or wins
// cancel_or_disarm(). A thread that has lost the exchange of Node::word does not touch the frame afterwards.
//
//   thread                    may touch                  because
//   the awaiting thread,      the frame, until the       from then on another thread may resume the coroutine,
//   in await_suspend()        timeout is published;      which may destroy the frame; the handle of this thread
//                             then only the node         keeps the node
//   the owner of the frame    the frame and the node     a handle keeps the node: its own, or that of the task or the
//                                                        stop() inside which it runs
//   a thread in the stop      the frame and the node     the owner removes the stop callback first, and so waits
//   callback                                             until the callback has returned
//
// The callback never waits, so the owner waits only briefly. A stop may be requested before new_timeout() has returned,
// when no thread can cancel the timeout yet. So the callback and the awaiting thread both exchange Waker::request_. The
// second of them cancels.

namespace hwt {

using internal::Node;

/// The task of the timeout of a Sleep. The node never destroys it (TaskKind::Trivial), so it stays valid until the node
/// is reused.
class Sleep::Waker final : public TimerTask {
 public:
  explicit Waker(Sleep& sleep) noexcept : sleep_(&sleep) {}

  void run(Timeout&) override { wake(Wake::Expired); }

  void hwt_will_not_run(detail::NotRun why) override {
    if (why != detail::NotRun::Refused) return wake(Wake::Stopped);
    // new_timeout() refuses the timeout, on the awaiting thread. The node is freed next, so no stop callback may use
    // it.
    sleep_->on_stop_.reset();
    sleep_->waker_ = nullptr;
  }

  /// Called when the coroutine is resumed or destroyed. The waker then wakes nothing.
  void forget_sleep() noexcept { sleep_ = nullptr; }

  /// Called by the awaiting thread when the timeout can be cancelled. Returns whether a stop was requested before; then
  /// this thread must cancel. release: a later request() sees the pending timeout.
  bool arm() noexcept { return request_.exchange(Request::Armed, std::memory_order_release) == Request::Made; }

  /// Called by the thread that requests the stop. Returns whether arm() came before; then this thread must cancel.
  /// acquire: it sees the pending timeout.
  bool request() noexcept { return request_.exchange(Request::Made, std::memory_order_acquire) == Request::Armed; }

 private:
  enum class Request : std::uint8_t { None, Made, Armed };

  void wake(Wake why) {
    if (sleep_ == nullptr) return;  // the user ran a timeout that stop() returned, or destroyed the coroutine
    const std::coroutine_handle<> sleeper = sleep_->sleeper_;
    sleep_->end(why);
    sleeper.resume();
  }

  Sleep* sleep_;
  std::atomic<Request> request_ = Request::None;
};

Sleep::Sleep(Timer& timer, When when, std::stop_token stop, bool until) noexcept
    : timer_(timer), when_(when), stop_(std::move(stop)), until_(until) {}

Sleep::Sleep(const Sleep& other) noexcept : Sleep(other.timer_, other.when_, other.stop_, other.until_) {}

Sleep::~Sleep() {
  on_stop_.reset();
  if (waker_ == nullptr) return;
  const Timeout timeout = handle();
  internal::cancel_or_disarm(*Node::of(timeout));
  // stop() may have taken the timeout already, and may be about to call will_not_run().
  waker_->forget_sleep();
}

/// Returns a handle of the timeout. While the coroutine sleeps, the node is alive: the inbox, the wheel, the running
/// task, the executor's job or stop() has a reference.
Timeout Sleep::handle() const noexcept { return internal::handle_of(internal::Node::around(*waker_)); }

bool Sleep::await_ready() {
  wake_ = Wake::Stopped;
  if (stop_.stop_requested()) return true;
  wake_ = Wake::Expired;
  return when_.nanoseconds() <= (when_.is_deadline() ? internal::nanoseconds_of(timer_.now()) : 0);
}

bool Sleep::await_suspend(std::coroutine_handle<> sleeper) {
  sleeper_ = sleeper;
  const bool stoppable = stop_.stop_possible();
  const detail::Scheduled scheduled =
      detail::schedule_named(timer_, {&build_waker, this, detail::TaskKind::Trivial}, when_, "hwt::sleep_for");
  if (scheduled.node == nullptr) {
    if (scheduled.result() != detail::Result::Stopped) {
      detail::raise(scheduled, until_ ? "sleep_until" : "sleep_for");
    }
    wake_ = Wake::Stopped;
    return false;
  }
  const Timeout timeout = Node::adopt(scheduled.node);
  // From here on another thread may have resumed the coroutine and destroyed `this`, unless cancel_or_disarm() wins.
  if (!stoppable) return true;
  Node& node = *scheduled.node;
  if (!static_cast<Waker&>(node.stored_task()).arm() || !internal::cancel_or_disarm(node)) return true;
  end(Wake::Stopped);
  return false;
}

/// Builds the waker in the node, and registers the stop callback. Not earlier, because the callback needs the node. Not
/// later, because another thread may own the frame as soon as the timeout is published.
TimerTask* Sleep::build_waker(void* storage, void* sleep) {
  // A thread that has cancelled the timeout still uses the waker, so it must fit into the part that a cancel keeps.
  static_assert(sizeof(Waker) <= detail::kKeptStorageSize && alignof(Waker) <= detail::kTaskStorageAlign);
  Sleep& self = *static_cast<Sleep*>(sleep);
  self.waker_ = ::new (storage) Waker(self);
  if (self.stop_.stop_possible()) self.on_stop_.emplace(self.stop_, OnStopRequest{&self});
  return self.waker_;
}

/// The stop callback. Until it returns, or calls end() itself, no other thread resumes the coroutine, because that
/// thread must first remove the callback.
void Sleep::stop_requested() noexcept {
  if (!waker_->request()) return;
  const std::coroutine_handle<> sleeper = sleeper_;
  {
    const Timeout timeout = handle();
    if (!internal::cancel_or_disarm(*Node::of(timeout))) return;
    end(Wake::Stopped);
  }
  sleeper.resume();
}

/// Ends the sleep. Called by the owner of the frame, before it resumes the coroutine.
void Sleep::end(Wake why) noexcept {
  on_stop_.reset();
  std::exchange(waker_, nullptr)->forget_sleep();
  wake_ = why;
}

Sleep sleep_for(Timer& timer, Delay delay, std::stop_token stop) {
  return {timer, Delay(detail::number("sleep_for: delay", delay)), std::move(stop), false};
}

Sleep sleep_until(Timer& timer, detail::Point deadline, std::stop_token stop) {
  return {timer, deadline, std::move(stop), true};
}

}  // namespace hwt
