#include "hashed_wheel_timer/repeated_timer.h"

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "hashed_wheel_timer/internal/diagnostics.h"

namespace hwt {

namespace {

using std::chrono::nanoseconds;

nanoseconds checked(nanoseconds timeout) {
  if (timeout > nanoseconds::zero()) return timeout;
  throw std::invalid_argument("timeout: " + std::to_string(timeout.count()) + " (expected: 1 .. " +
                              std::to_string(std::numeric_limits<nanoseconds::rep>::max()) + " nanoseconds)");
}

/// What went wrong while a thread ran hooks: the latest error of each source.
class Errors {
 public:
  enum Source : std::size_t { Trigger, Adjust, Arm, Destroy, kSources };

  /// Call in a catch block.
  void add(Source source) noexcept { errors_[source] = std::current_exception(); }

  /// A single error leaves as it is; of several none may be lost, so they leave as one text.
  void rethrow(const std::string& name) const {
    const std::exception_ptr* single = nullptr;
    int count = 0;
    for (const std::exception_ptr& error : errors_) {
      if (error == nullptr) continue;
      single = &error;
      ++count;
    }
    if (count == 1) std::rethrow_exception(*single);
    if (count > 1) throw std::runtime_error("RepeatedTimer " + name + ": " + text());
  }

 private:
  std::string text() const {
    constexpr std::array<const char*, kSources> kNames = {"on_trigger", "adjust_timeout", "arming", "on_destroy"};
    std::string all;
    for (std::size_t source = 0; source < kSources; ++source) {
      if (errors_[source] == nullptr) continue;
      if (!all.empty()) all += "; ";
      all += std::string(kNames[source]) + ": " + what(errors_[source]);
    }
    return all;
  }

  static std::string what(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      return e.what();
    } catch (...) {
      return "not a std::exception";
    }
  }

  std::array<std::exception_ptr, kSources> errors_;
};

}  // namespace

// One thread at a time is the conductor: the only one that runs hooks and that arms. It becomes it under the lock and
// gives it up under the lock, after it has left the timer armed, stopped or destroyed, whatever was asked for. A call
// that finds a conductor therefore only writes down what it wants. So hooks run without the lock and yet one at a time,
// and since nobody else arms while the conductor asks adjust_timeout, at most one timeout is armed at any moment:
// restart() during a trigger cannot start a second chain, as it does in SOFAJRaft.
//
// The lock is held while the Timer is called. It calls back from there to destroy our own task only, and its
// thread_factory if it has not been started.
class RepeatedTimer::State : public std::enable_shared_from_this<State> {
 public:
  State(std::string name, nanoseconds timeout, Timer& timer, Hooks hooks)
      : name_(std::move(name)), timer_(timer), timeout_(timeout), hooks_(std::move(hooks)) {}

  void start() {
    Lock lock(mutex_);
    if (is_running()) return;
    stopped_ = false;
    arm_as_asked(lock);
  }

  void restart() {
    Lock lock(mutex_);
    stopped_ = false;
    arm_as_asked(lock);
  }

  void reset() {
    Lock lock(mutex_);
    if (is_running()) arm_as_asked(lock);
  }

  void reset(nanoseconds timeout) {
    Lock lock(mutex_);
    if (destroyed_) return;
    timeout_ = timeout;
    if (is_running()) arm_as_asked(lock);
  }

  void stop() {
    const Lock lock(mutex_);
    stopped_ = true;
    disarm();
  }

  bool run_once_now() {
    Lock lock(mutex_);
    if (has_conductor() || !is_running()) return false;
    disarm();
    conduct(lock, First::Trigger);
    return true;
  }

  void destroy() {
    Lock lock(mutex_);
    if (std::exchange(destroyed_, true)) return;
    disarm();
    if (!has_conductor()) conduct(lock, First::Nothing);
  }

  void wait_for_conductor() {
    Lock lock(mutex_);
    if (conductor_ == std::this_thread::get_id()) return;
    conductor_left_.wait(lock, [this] { return !has_conductor(); });
  }

  nanoseconds timeout() const {
    const Lock lock(mutex_);
    return timeout_;
  }

  bool running() const {
    const Lock lock(mutex_);
    return is_running();
  }

  std::string describe() const {
    std::string name = name_;
    internal::make_one_line(name);
    const Lock lock(mutex_);
    const char* state = destroyed_ ? "destroyed" : is_running() ? "running" : "stopped";
    return "RepeatedTimer(" + name + ", timeout: " + std::to_string(timeout_.count()) + " ns, " + state +
           (triggering_ ? ", triggering)" : ")");
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  bool has_conductor() const { return conductor_ != std::thread::id(); }

  // A timeout that is cancelled although this class did not do it was cancelled by the Timer's stop().
  bool is_armed() const { return armed_ && !armed_.is_cancelled(); }

  // A conductor ends with arming.
  bool is_running() const { return !stopped_ && !destroyed_ && (has_conductor() || is_armed()); }

  void arm_as_asked(Lock& lock) {
    if (!destroyed_ && !has_conductor()) conduct(lock, First::Nothing);
  }

  // The timeout of that number has expired. It may have been claimed before it lost against stop(), restart(), reset()
  // or run_once_now(), and wait in the executor or for the lock since: then the number is an old one, or the conductor
  // is about to replace it.
  void on_expiry(std::uint64_t arming) {
    Lock lock(mutex_);
    if (arming != arming_ || has_conductor()) return;
    disarm();
    conduct(lock, First::Trigger);
  }

  enum class First : bool { Nothing, Trigger };

  // Then whatever is due. Unlocks, and throws what went wrong.
  void conduct(Lock& lock, First first) {
    conductor_ = std::this_thread::get_id();
    Errors errors;
    if (first == First::Trigger) {
      triggering_ = true;
      unlocked(lock, errors, Errors::Trigger, hooks_.on_trigger);
      triggering_ = false;
    }
    if (!stopped_ && !destroyed_) arm(lock, errors);
    if (destroyed_) release_hooks(lock, errors);
    conductor_ = {};
    conductor_left_.notify_all();
    lock.unlock();
    errors.rethrow(name_);
  }

  // What is asked for meanwhile, a restart() say, is met by what comes here at the end; but for a new timeout, about
  // which adjust_timeout has to be asked.
  void arm(Lock& lock, Errors& errors) {
    nanoseconds asked{};
    nanoseconds delay{};
    do {
      delay = asked = timeout_;
      if (hooks_.adjust_timeout) {
        unlocked(lock, errors, Errors::Adjust, [&] { delay = hooks_.adjust_timeout(asked); });
      }
    } while (asked != timeout_);
    if (stopped_ || destroyed_) return;
    try {
      // Moving the armed timeout is cheaper than a new one, and cannot be refused for max_pending_timeouts.
      if (armed_.reschedule(delay)) return;
      disarm();
      armed_ = timer_.new_timeout([self = shared_from_this(), arming = arming_] { self->on_expiry(arming); }, delay);
    } catch (...) {
      errors.add(Errors::Arm);  // and is_running() tells it
    }
  }

  void disarm() {
    ++arming_;
    armed_.cancel();
    armed_ = Timeout();  // it may hold the task, which holds this: a circle
  }

  // The hooks go as soon as none of them can run any more: what they hold may be what holds the RepeatedTimer.
  void release_hooks(Lock& lock, Errors& errors) {
    Hooks hooks = std::exchange(hooks_, {});
    if (hooks.on_destroy) unlocked(lock, errors, Errors::Destroy, hooks.on_destroy);
    lock.unlock();
    hooks = {};
    lock.lock();
  }

  template <class Hook>
  static void unlocked(Lock& lock, Errors& errors, Errors::Source source, const Hook& hook) {
    lock.unlock();
    try {
      hook();
    } catch (...) {
      errors.add(source);
    }
    lock.lock();
  }

  const std::string name_;
  Timer& timer_;

  mutable std::mutex mutex_;
  std::condition_variable conductor_left_;

  // Guarded by mutex_.
  nanoseconds timeout_;
  bool stopped_ = true;
  bool destroyed_ = false;
  bool triggering_ = false;
  std::uint64_t arming_ = 0;  // the number of armed_, or of the next one
  Timeout armed_;
  std::thread::id conductor_;  // nobody by default

  // Only for the conductor, without the lock: to become it is to take over from the one before, under the lock.
  Hooks hooks_;
};

RepeatedTimer::RepeatedTimer(std::string name, detail::Span timeout, Timer& timer, Hooks hooks) {
  checked(timeout);
  if (!hooks.on_trigger) throw std::invalid_argument("on_trigger: null (expected: a callable)");
  state_ = std::make_shared<State>(std::move(name), timeout, timer, std::move(hooks));
}

RepeatedTimer::~RepeatedTimer() {
  try {
    state_->destroy();
  } catch (...) {
    internal::TaskErrorLog().report(std::current_exception());
  }
  state_->wait_for_conductor();
}

// Copies of state_ where a hook may run, which may destroy *this.

void RepeatedTimer::start() { std::shared_ptr(state_)->start(); }

void RepeatedTimer::stop() { state_->stop(); }

void RepeatedTimer::restart() { std::shared_ptr(state_)->restart(); }

void RepeatedTimer::reset() { std::shared_ptr(state_)->reset(); }

void RepeatedTimer::reset(detail::Span timeout) { std::shared_ptr(state_)->reset(checked(timeout)); }

bool RepeatedTimer::run_once_now() { return std::shared_ptr(state_)->run_once_now(); }

void RepeatedTimer::destroy() { std::shared_ptr(state_)->destroy(); }

nanoseconds RepeatedTimer::timeout() const noexcept { return state_->timeout(); }

bool RepeatedTimer::running() const noexcept { return state_->running(); }

std::string RepeatedTimer::describe() const { return state_->describe(); }

}  // namespace hwt
