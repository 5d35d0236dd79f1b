#include "hashed_wheel_timer/coroutine.h"

#include <new>
#include <utility>

#include "hashed_wheel_timer/detail/refuse_nan.h"
#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/internal/core/task_run.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/platform/clock.h"

// The thread that resumes a coroutine. The frame has no word of its own for that: Node::word decides, as for every
// task. The thread that runs the waker, is told that it will not run, or wins cancel_or_disarm() owns the frame from
// then on. The other threads have lost that exchange and do not touch the frame:
//
//   thread                    may touch                  because
//   the thread that awaits    the frame, until the       from then on another thread may have resumed the
//                             timeout is published;      coroutine, and the frame may be gone; but this thread
//                             then the node              has a handle
//   the thread that has it    the frame and the node     a handle is its own, or of the task or the stop() that it
//                                                        is inside of
//   one that requests the     the frame and the node     whoever has the frame first takes the stop callback out,
//   stop, in its callback                                which waits until the callback has returned
//
// The callback waits for nobody, so that wait is short. It may come before new_timeout() has returned, when nobody can
// cancel yet. So it and the thread that awaits meet in Waker::request_, in the node; the second one of them cancels.

namespace hwt {

using internal::Node;
using std::chrono::steady_clock;

/// The task of a sleep's timeout. Trivial to destroy: the storage keeps it until the node is used again.
class Sleep::Waker final : public TimerTask {
 public:
  explicit Waker(Sleep& sleep) noexcept : sleep_(&sleep) {}

  void run(Timeout&) override { wake(Wake::Expired); }

  void will_not_run(detail::NotRun why) override {
    if (why != detail::NotRun::Refused) return wake(Wake::Stopped);
    // On the thread that awaits, for which new_timeout() throws. The node goes, so no callback may be at it.
    sleep_->on_stop_.reset();
    sleep_->waker_ = nullptr;
  }

  /// The coroutine has been resumed, or destroyed.
  void forget_sleep() noexcept { sleep_ = nullptr; }

  /// By the thread that awaits, when the timeout can be cancelled. True: the stop has been requested, and it is this
  /// thread's to cancel. release: a thread that requests the stop from now on finds the
  /// timeout pending.
  bool arm() noexcept { return request_.exchange(Request::Armed, std::memory_order_release) == Request::Made; }

  /// By the thread that requests the stop. True: it is this thread's to cancel. acquire: see above.
  bool request() noexcept { return request_.exchange(Request::Made, std::memory_order_acquire) == Request::Armed; }

 private:
  enum class Request : std::uint8_t { None, Made, Armed };

  void wake(Wake why) {
    if (sleep_ == nullptr) return;  // run by hand after stop(), or the coroutine was destroyed
    const std::coroutine_handle<> sleeper = sleep_->sleeper_;
    sleep_->end(why);
    sleeper.resume();
  }

  Sleep* sleep_;
  std::atomic<Request> request_ = Request::None;
};

Sleep::Sleep(Timer& timer, detail::When when, std::stop_token stop) noexcept
    : timer_(timer), when_(when), stop_(std::move(stop)) {}

Sleep::Sleep(const Sleep& other) noexcept : Sleep(other.timer_, other.when_, other.stop_) {}

Sleep::~Sleep() {
  on_stop_.reset();
  if (waker_ == nullptr) return;
  const Timeout timeout = handle();
  internal::cancel_or_disarm(*Node::of(timeout));
  // stop() may have it already, and be about to tell it.
  waker_->forget_sleep();
}

/// While it sleeps the node is there: the inbox or the wheel has it, the task that runs, the executor's job, or stop().
Timeout Sleep::handle() const noexcept {
  Node& node = Node::around(*waker_);
  node.add_reference();
  return Node::adopt(&node);
}

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
    if (scheduled.result() != detail::Result::Stopped) detail::raise(scheduled);
    wake_ = Wake::Stopped;
    return false;
  }
  const Timeout timeout = Node::adopt(scheduled.node);
  // From here on another thread may have resumed the coroutine: `this` may be gone.
  if (!stoppable) return true;
  Node& node = *scheduled.node;
  if (!static_cast<Waker&>(node.stored_task()).arm() || !internal::cancel_or_disarm(node)) return true;
  end(Wake::Stopped);
  return false;
}

/// The last moment at which the frame is this thread's alone, and the first at which there is a node.
TimerTask* Sleep::build_waker(void* storage, void* sleep) {
  static_assert(sizeof(Waker) <= detail::kTaskStorageSize && alignof(Waker) <= detail::kTaskStorageAlign);
  Sleep& self = *static_cast<Sleep*>(sleep);
  self.waker_ = ::new (storage) Waker(self);
  if (self.stop_.stop_possible()) self.on_stop_.emplace(self.stop_, OnStopRequest{&self});
  return self.waker_;
}

/// In the stop callback. While it has not returned, nobody resumes the coroutine but this thread.
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

/// By the thread that has the coroutine now.
void Sleep::end(Wake why) noexcept {
  on_stop_.reset();
  std::exchange(waker_, nullptr)->forget_sleep();
  wake_ = why;
}

Sleep sleep_for(Timer& timer, Delay delay, std::stop_token stop) {
  return {timer, Delay(detail::number("sleep_for: delay", delay)), std::move(stop)};
}

Sleep sleep_until(Timer& timer, steady_clock::time_point deadline, std::stop_token stop) {
  return {timer, deadline, std::move(stop)};
}

}  // namespace hwt
