// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/repeated_timer.h"

#include <algorithm>
#include <atomic>
#include <exception>

#include "hashed_wheel_timer/detail/held_calls.h"
#include "hashed_wheel_timer/detail/refuse_nan.h"
#include "hashed_wheel_timer/detail/used_timer.h"
#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/core/named_timeout.h"
#include "hashed_wheel_timer/internal/platform/forked_child.h"
#include "hashed_wheel_timer/internal/recurring/conductor.h"
#include "hashed_wheel_timer/internal/report/log.h"
#include "hashed_wheel_timer/internal/report/refuse.h"

namespace hwt {

namespace {

using std::chrono::nanoseconds;

nanoseconds positive_timeout(Delay timeout) {
  return internal::positive("RepeatedTimer: timeout", detail::number("RepeatedTimer: timeout", timeout));
}

}  // namespace

// One thread at a time is the conductor: it alone runs hooks and arms (internal/recurring/conductor.h). Before it
// leaves, it arms the timer, or stops or destroys it, as calls have requested meanwhile. A call that finds a hook
// running only notes its request. So hooks run one at a time without a lock. No other thread arms while the conductor
// calls adjust_timeout, so at most one timeout is armed: restart() during a trigger cannot start a second chain. In
// SOFAJRaft it can.
//
// Only the conductor calls the Timer, and other calls wait for it. The Timer calls back only the destructor of our own
// task, and its thread_factory if it was not started. It may also have to call its on_earlier(), whose function may
// call this object. So the conductor holds that call back until it has left, or until it runs a hook.
class RepeatedTimer::State : public std::enable_shared_from_this<State> {
  /// The errors while a thread ran hooks: the latest one of each source.
  class Errors {
   public:
    enum Source : std::size_t { Trigger, Adjust, Arm, Destroy, kSources };

    /// Call in a catch block.
    void add(Source source) noexcept { errors_[source] = internal::caught_exception("a hook of a RepeatedTimer"); }

    /// Throws the errors, if any. A single error is thrown as it is. Several are thrown as one text, so that none is
    /// lost.
    void rethrow(const std::string& label) const {
      const auto is_set = [](const std::exception_ptr& error) { return error != nullptr; };
      const auto first = std::find_if(errors_.begin(), errors_.end(), is_set);
      if (first == errors_.end()) return;
      if (std::none_of(first + 1, errors_.end(), is_set)) std::rethrow_exception(*first);
      constexpr std::array<const char*, kSources> kNames = {"on_trigger", "adjust_timeout", "arming", "on_destroy"};
      std::string all = label;
      const char* separator = ": ";
      for (std::size_t source = 0; source < kSources; ++source) {
        if (!is_set(errors_[source])) continue;
        all += std::exchange(separator, "; ") + std::string(kNames[source]) + ": ";
        internal::with_text_of(errors_[source], [&all](const char* what) { all += what; });
      }
      throw std::runtime_error(all);
    }

   private:
    std::array<std::exception_ptr, kSources> errors_;
  };

 public:
  State(std::string name, nanoseconds timeout, Timer& timer, Hooks hooks)
      : name_(std::move(name)),
        label_("RepeatedTimer " + name_),
        timer_(timer),
        used_(timer),
        timeout_(timeout.count()),
        hooks_(std::move(hooks)) {}

  bool in_forked_child() const noexcept { return used_.in_forked_child(); }

  void start() {
    // If a conductor is at work and not in a hook, it may fail to arm. enter() waits for it, so that this call then
    // arms itself, or throws.
    if (is_running(conductor_.word(), Conductor::kInHook)) return;
    if (const auto before = conductor_.enter(unstopped)) conduct(is_running(*before) ? First::Nothing : First::Arm);
  }

  void restart() {
    if (conductor_.enter(unstopped)) conduct(First::Arm);
  }

  void reset() {
    if (running()) arm_again_if_running();
  }

  void reset(nanoseconds timeout) {
    if ((conductor_.word() & Conductor::kDestroyed) != 0) return;
    timeout_.store(timeout.count(), std::memory_order_relaxed);
    if (conductor_.is_here()) asked_ = timeout;  // inside adjust_timeout: counts for the next arming
    arm_again_if_running();
  }

  void stop() {
    if (conductor_.enter([](Word word) { return word | Conductor::kStopped; })) conduct(First::Nothing);
  }

  bool run_once_now() {
    if (!running()) return false;
    const auto before = conductor_.enter(unchanged);
    if (!before) return false;
    const bool runs = is_running(*before);
    conduct(runs ? First::Trigger : First::Nothing);
    return runs;
  }

  void destroy() {
    if (conductor_.enter([](Word word) { return word | Conductor::kDestroyed; })) conduct(First::Nothing);
  }

  void wait_for_conductor() const noexcept { conductor_.wait_for_other(); }

  nanoseconds timeout() const noexcept { return nanoseconds(timeout_.load(std::memory_order_relaxed)); }

  bool running() const { return is_running(conductor_.word()); }

  std::string describe() const {
    const Word seen = conductor_.word();
    const char* state = (seen & Conductor::kDestroyed) != 0 ? "destroyed" : is_running(seen) ? "running" : "stopped";
    return "RepeatedTimer(" + name_ + ", timeout: " + std::to_string(timeout().count()) + " ns, " + state +
           ((seen & Conductor::kTriggering) != 0 ? ", triggering)" : ")");
  }

 private:
  using Conductor = internal::Conductor;
  using Word = Conductor::Word;
  friend class internal::ArmedTask<State>;

  static Word unchanged(Word word) noexcept { return word; }
  static Word unstopped(Word word) noexcept { return word & ~Conductor::kStopped; }

  // Returns whether the timer will trigger. While there is a conductor, returns whether the word has a bit of `arming`:
  // kConducted for any conductor, kInHook for one in a hook. Such a conductor arms before it leaves, unless the Timer
  // refuses.
  bool is_running(Word seen, Word arming = Conductor::kConducted) const noexcept {
    if ((seen & (Conductor::kStopped | Conductor::kDestroyed)) != 0) return false;
    // In a forked child the copy of a conductor never leaves, and no call may wait for it.
    if ((seen & Conductor::kConducted) != 0) return (seen & arming) != 0 || in_forked_child();
    return (seen & (Conductor::kArmed | Conductor::kTimerEnded)) == Conductor::kArmed;
  }

  void arm_again_if_running() {
    if (const auto before = conductor_.enter(unchanged)) conduct(is_running(*before) ? First::Arm : First::Nothing);
  }

  // Called by the conductor.

  // A conductor that has left calls on_earlier() and throws the errors.
  struct Work {
    explicit Work(internal::Sleeper& sleeper) noexcept : calls(sleeper) {}
    Errors errors;
    detail::HeldCalls calls;
  };

  // Called when the armed timeout has expired. If it waited in an executor during a stop(), restart(), reset() or
  // run_once_now(), its number is old, or the conductor is about to replace it.
  void conduct_expired(const Timeout& expired) {
    Work work(used_.sleeper());
    armed_ = Timeout();
    conductor_.begin_hook(Conductor::kTriggering);
    run_hook(work, Errors::Trigger, hooks_.on_trigger);
    try {
      conduct(First::Arm, work);
    } catch (...) {
      if (expired.is_cancelled()) throw;  // stop() returned it, and the user runs it
      internal::Node::of(expired)->core().report_error(expired, "a RepeatedTimer");
    }
  }

  // The work of a conductor before it meets the requests of other calls. After a trigger it arms, too.
  enum class First : std::uint8_t { Nothing, Arm, Trigger };

  void conduct(First first) {
    Work work(used_.sleeper());
    if (first == First::Trigger) {
      disarm();
      conductor_.begin_hook(Conductor::kTriggering);
      run_hook(work, Errors::Trigger, hooks_.on_trigger);
    }
    conduct(first, work);
  }

  // Meets the requests, ceases to be the conductor, calls on_earlier(), and throws the errors. Arms first, unless
  // `first` is Nothing.
  void conduct(First first, Work& work) {
    if (first != First::Nothing && conductor_.wanted()) arm(work);
    if (!conductor_.wanted()) disarm();
    if (conductor_.destroyed()) release_hooks(work);
    while (!conductor_.leave()) {
      // This thread was preempted for so long that the timeout that it had armed has expired.
      if (armed_.is_expired()) arm_anew(nanoseconds::zero(), work);
    }
    work.calls.make();
    work.errors.rethrow(label_);
  }

  // Arms the next trigger. Arming also meets requests that come meanwhile, such as a restart(). Only a new timeout
  // needs another call of adjust_timeout.
  void arm(Work& work) {
    nanoseconds delay{};
    do {
      delay = asked_ = timeout();
      if (hooks_.adjust_timeout) {
        conductor_.begin_hook(0);
        run_hook(work, Errors::Adjust, [&] { delay = hooks_.adjust_timeout(delay); });
        if (!conductor_.wanted()) return;
      }
    } while (asked_ != timeout());
    try {
      // Moving the armed timeout is cheaper than a new one, and cannot be refused for max_pending_timeouts.
      if (armed_.reschedule(delay)) return;
    } catch (...) {
      work.errors.add(Errors::Arm);
      return;
    }
    arm_anew(delay, work);
  }

  void arm_anew(nanoseconds delay, Work& work) {
    disarm();
    try {
      armed_ = internal::named_timeout(timer_, internal::ArmedTask<State>(shared_from_this(), conductor_), Delay(delay),
                                       "hwt::RepeatedTimer", label_.c_str());
    } catch (...) {
      work.errors.add(Errors::Arm);  // is_running() is false once this thread has left
      return;
    }
    conductor_.set_armed();
  }

  void disarm() {
    conductor_.set_disarmed();
    armed_.cancel();
    armed_ = Timeout();  // breaks a cycle: the handle may hold the task, and the task holds this
  }

  // Runs on_destroy and destroys the hooks, because they may own the RepeatedTimer.
  void release_hooks(Work& work) {
    Hooks hooks = std::exchange(hooks_, {});
    conductor_.begin_hook(0);
    run_hook(work, Errors::Destroy, [&] {
      if (hooks.on_destroy) hooks.on_destroy();
    });
    conductor_.begin_hook(0);
    run_hook(work, Errors::Destroy, [&] { hooks = {}; });
  }

  // Runs a hook that begin_hook() has begun, and ends it.
  template <class Hook>
  void run_hook(Work& work, Errors::Source source, const Hook& hook) {
    work.calls.make();
    try {
      hook();
    } catch (...) {
      work.errors.add(source);
    }
    work.calls.hold();
    conductor_.end_hook();
  }

  const std::string name_;
  const std::string label_;  // begins messages
  Timer& timer_;
  const detail::UsedTimer used_;  // of timer_, which may be gone when this object is stopped or destroyed

  Conductor conductor_;
  // relaxed: reset() stores it before it enters or notes, and the conductor reads it after it has entered or ended a
  // hook.
  std::atomic<std::int64_t> timeout_;

  // Only the conductor uses these.
  nanoseconds asked_{};  // the timeout for which it called adjust_timeout last
  Timeout armed_;
  Hooks hooks_;
};

RepeatedTimer::RepeatedTimer(std::string name, Delay timeout, Timer& timer, Hooks hooks) {
  const nanoseconds checked = positive_timeout(timeout);
  if (!hooks.on_trigger) internal::refuse("RepeatedTimer: on_trigger", "null", "a callable");
  internal::make_one_line(name);
  state_ = std::make_shared<State>(std::move(name), checked, timer, std::move(hooks));
}

RepeatedTimer::~RepeatedTimer() {
  if (state_->in_forked_child()) {
    internal::abandon(state_);
    return;
  }
  try {
    state_->destroy();
  } catch (...) {
    internal::LinePerSecond().report(internal::caught_exception("a hook of a RepeatedTimer"),
                                     "a hook of a RepeatedTimer");
  }
  state_->wait_for_conductor();
}

// Calls that may run a hook copy state_, because the hook may destroy *this.

void RepeatedTimer::start() { std::shared_ptr(state_)->start(); }

void RepeatedTimer::stop() {
  if (!state_->in_forked_child()) state_->stop();
}

void RepeatedTimer::restart() { std::shared_ptr(state_)->restart(); }

void RepeatedTimer::reset() { std::shared_ptr(state_)->reset(); }

void RepeatedTimer::reset(Delay timeout) { std::shared_ptr(state_)->reset(positive_timeout(timeout)); }

bool RepeatedTimer::run_once_now() { return std::shared_ptr(state_)->run_once_now(); }

void RepeatedTimer::destroy() {
  if (!state_->in_forked_child()) std::shared_ptr(state_)->destroy();
}

nanoseconds RepeatedTimer::timeout() const noexcept { return state_->timeout(); }

bool RepeatedTimer::running() const noexcept { return state_->running(); }

std::string RepeatedTimer::describe() const { return state_->describe(); }

}  // namespace hwt
