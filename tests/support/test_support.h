#pragma once

// Helpers shared by the tests. Tests wait for events. They let time pass only if there is no event. A bound that only
// guards against hanging is generous, so that no test fails on a busy machine.
//
// Declare the objects to which tasks refer before the timer, and a Gate after the timer. Then the destructors run in
// the right order even if an assertion ends the test early.
//
// This header includes what most tests need of the standard library, and timers. They rely on that.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/support/build_kind.h"
#include "tests/support/eventually.h"

namespace hwt::test {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

/// A delay that is longer than any test.
inline constexpr std::chrono::hours kFar{1};
/// By how much the clock by which a delay is measured may be ahead of steady_clock; see Options::exact_clock.
inline constexpr std::chrono::microseconds kClockIsAhead{4};
/// A delay that is no number.
inline constexpr std::chrono::duration<double> kNanDelay{std::numeric_limits<double>::quiet_NaN()};

/// The task of a timeout that is cancelled, or far in the future.
inline void must_not_run() { ADD_FAILURE() << "it must not run"; }

/// Schedules a task. The task is the last parameter, because it may be long.
template <class Task>
Timeout after(Timer& timer, When when, Task&& task) {
  return timer.new_timeout(std::forward<Task>(task), when);
}

/// Adds a task to a timer or to a scope. The task is the last parameter, because it may be long.
template <class Owner, class Task>
TimeoutId add_after(Owner& owner, When when, Task&& task) {
  return owner.add(std::forward<Task>(task), when);
}

/// Schedules `count` timeouts that do nothing.
inline std::vector<Timeout> far_timeouts(Timer& timer, std::size_t count, When when = std::chrono::hours(1)) {
  std::vector<Timeout> timeouts;
  timeouts.reserve(count);
  while (timeouts.size() != count) timeouts.push_back(timer.new_timeout([] {}, when));
  return timeouts;
}

/// Adds `count` timeouts that do nothing.
inline std::vector<TimeoutId> far_ids(Timer& timer, std::size_t count, When when = std::chrono::hours(1)) {
  std::vector<TimeoutId> ids;
  ids.reserve(count);
  while (ids.size() != count) ids.push_back(timer.add([] {}, when));
  return ids;
}

/// Cancels all of them and drops the handles.
inline void cancel_all(std::vector<Timeout>& timeouts) {
  for (Timeout& timeout : timeouts) EXPECT_TRUE(timeout.cancel());
  timeouts.clear();
}

/// Runs f(index) on `count` threads. The result joins them.
template <class F>
[[nodiscard]] std::vector<std::jthread> start_threads(int count, F f) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([f, i] { f(i); });
  return threads;
}

/// A task that must not run. Its cancelled() calls a function.
class OnCancelled final : public TimerTask {
 public:
  explicit OnCancelled(std::function<void(Timeout&)> f) : f_(std::move(f)) {}
  void run(Timeout&) override { ADD_FAILURE() << "ran although it was cancelled"; }
  void cancelled(Timeout& self) override { f_(self); }

 private:
  const std::function<void(Timeout&)> f_;
};

/// Makes a task whose cancelled() calls f() or f(Timeout&).
template <class F>
std::shared_ptr<TimerTask> on_cancelled(F f) {
  if constexpr (std::is_invocable_v<F&, Timeout&>) {
    return std::make_shared<OnCancelled>(std::move(f));
  } else {
    return std::make_shared<OnCancelled>([f = std::move(f)](Timeout&) mutable { f(); });
  }
}

class Latch {
 public:
  explicit Latch(int count = 1) : count_(count) {}

  void count_down() {
    const std::lock_guard lock(mutex_);
    if (--count_ <= 0) opened_.notify_all();  // under the lock: afterwards the waiter may destroy the latch
  }
  [[nodiscard]] bool wait(std::chrono::milliseconds limit = kGenerous) {
    std::unique_lock lock(mutex_);
    return opened_.wait_for(lock, limit, [this] { return count_ <= 0; });
  }
  [[nodiscard]] bool is_open() {
    const std::lock_guard lock(mutex_);
    return count_ <= 0;
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  int count_;
};

/// Replaces std::barrier, which loses wake-ups in some standard libraries (MinGW's GCC 12).
class Barrier {
 public:
  explicit Barrier(int count) : count_(count), missing_(count) {}

  void arrive_and_wait() {
    std::unique_lock lock(mutex_);
    if (--missing_ == 0) {
      missing_ = count_;
      ++phase_;
      next_phase_.notify_all();
      return;
    }
    next_phase_.wait(lock, [this, phase = phase_] { return phase_ != phase; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable next_phase_;
  const int count_;
  int missing_;
  int phase_ = 0;
};

/// Waits until no timeout is pending. A claimed one counts as pending for a moment more.
[[nodiscard]] inline bool none_pending(const Timer& timer) {
  return eventually([&] { return timer.pending_timeouts() == 0; });
}

/// Runs f() or f(Timeout&) in a task that is due now, and waits for it. Returns false if the task did not run.
template <class F>
[[nodiscard]] bool ran_in_task(Timer& timer, F f) {
  const auto done = std::make_shared<Latch>();
  timer.new_timeout(
      [done, f](Timeout& self) {
        if constexpr (std::is_invocable_v<const F&, Timeout&>) {
          f(self);
        } else {
          f();
        }
        done->count_down();
      },
      0ns);
  return done->wait();
}

/// Holds the thread that calls it until let_go().
class Hold {
 public:
  void operator()() {
    entered_.count_down();
    EXPECT_TRUE(released_.wait());
  }
  [[nodiscard]] bool wait_until_entered() { return entered_.wait(); }
  void let_go() { released_.count_down(); }

 private:
  Latch entered_, released_;
};

/// Keeps the worker inside a task until open(). When the constructor returns, the timeouts that this thread has
/// scheduled before are in the wheel. Later ones stay in the inbox until the gate opens. The constructor waits
/// for a tick, so use a short one.
class Gate {
 public:
  explicit Gate(Timer& timer) {
    timer.new_timeout([hold = hold_] { (*hold)(); }, 0ns);
    EXPECT_TRUE(hold_->wait_until_entered()) << "the worker did not come to the gate";
  }
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void open() { hold_->let_go(); }

 private:
  const std::shared_ptr<Hold> hold_ = std::make_shared<Hold>();
};

/// Waits until the timeouts that this thread has scheduled are in the wheel.
inline void await_transfer(Timer& timer) { const Gate gate(timer); }

/// Waits until the worker has neither woken up nor started a tick for `time`.
inline void come_to_rest(const Timer& timer, std::chrono::milliseconds time = 20ms) {
  EXPECT_TRUE(eventually([&] {
    const TimerStats before = timer.stats();
    std::this_thread::sleep_for(time);
    const TimerStats after = timer.stats();
    return after.wakeups == before.wakeups && after.ticks == before.ticks;
  })) << "the worker never comes to rest";
}

/// Notes when a task has started last, and how often it has run.
class RunLog {
 public:
  void operator()() {
    started_ = steady_clock::now().time_since_epoch().count();
    ++count_;
    ran_.count_down();
  }
  [[nodiscard]] bool wait() { return ran_.wait(); }
  int count() const { return count_; }
  steady_clock::time_point started() const { return steady_clock::time_point(steady_clock::duration(started_)); }
  /// Waits for the run. Returns how long after the deadline of its timeout it has started.
  std::chrono::nanoseconds lateness(const Timeout& timeout) {
    EXPECT_TRUE(wait());
    return started() - timeout.deadline();
  }

 private:
  std::atomic<steady_clock::rep> started_ = 0;
  std::atomic<int> count_ = 0;
  Latch ran_;
};

class RecordingTask : public TimerTask {
 public:
  void run(Timeout&) override {
    ++runs;
    ran.count_down();
  }
  void cancelled(Timeout& timeout) override {
    ++cancellations;
    cancelled_on = std::this_thread::get_id();
    saw_cancelled = timeout.is_cancelled();
    was_cancelled.count_down();
  }

  std::atomic<int> runs = 0;
  std::atomic<int> cancellations = 0;
  std::atomic<std::thread::id> cancelled_on{};
  std::atomic<bool> saw_cancelled = false;
  Latch ran, was_cancelled;
};

/// An `Options::executor` that stores its jobs, so that the test can run them.
class JobQueue {
 public:
  std::function<void(std::function<void()>)> executor() {
    return [this](std::function<void()> job) {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
      ++size_;
    };
  }
  /// Waits until `count` jobs have come in all, those included that were taken since.
  [[nodiscard]] bool wait_for(int count) {
    return eventually([&] { return size_ >= count; });
  }
  std::vector<std::function<void()>> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(jobs_, {});
  }
  /// Runs the jobs that are stored. Returns their number.
  std::size_t run_all() {
    const auto jobs = take();
    for (const auto& job : jobs) job();
    return jobs.size();
  }

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> jobs_;
  std::atomic<int> size_ = 0;
};

/// An `Options::executor` that runs each job on its own thread.
class ThreadPerJob {
 public:
  std::function<void(std::function<void()>)> executor() {
    return [this](std::function<void()> job) {
      const std::lock_guard lock(mutex_);
      threads_.emplace_back(std::move(job));
    };
  }

 private:
  std::mutex mutex_;
  std::vector<std::jthread> threads_;
};

/// An `Options::on_task_error` that records exceptions: what() of a std::exception, the digits of an int.
class ErrorLog {
 public:
  std::function<void(std::exception_ptr, const Timeout&)> handler() {
    return [this](std::exception_ptr error, const Timeout& timeout) {
      std::string text = "unknown";
      try {
        std::rethrow_exception(std::move(error));
      } catch (const std::exception& e) {
        text = e.what();
      } catch (int number) {
        text = std::to_string(number);
      }
      const std::lock_guard lock(mutex_);
      errors_.push_back(text);
      timeouts_.push_back(timeout);
      threads_.push_back(std::this_thread::get_id());
    };
  }
  [[nodiscard]] bool wait_for(std::size_t count) {
    return eventually([&] { return errors().size() >= count; });
  }
  std::vector<std::string> errors() {
    const std::lock_guard lock(mutex_);
    return errors_;
  }
  std::vector<Timeout> timeouts() {
    const std::lock_guard lock(mutex_);
    return timeouts_;
  }
  std::vector<std::thread::id> threads() {
    const std::lock_guard lock(mutex_);
    return threads_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> errors_;
  std::vector<Timeout> timeouts_;
  std::vector<std::thread::id> threads_;
};

/// An `Options::thread_factory` that counts its calls and tells when a worker has ended.
class CountingFactory {
 public:
  std::function<std::thread(std::function<void()>)> factory() {
    return [state = state_](std::function<void()> body) {
      ++state->calls;
      return std::thread([state, body = std::move(body)]() mutable {
        body();
        body = nullptr;
        state->ended.count_down();
      });
    };
  }
  int calls() const { return state_->calls; }
  [[nodiscard]] bool wait_until_ended() { return state_->ended.wait(); }

 private:
  struct State {
    std::atomic<int> calls = 0;
    Latch ended;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// The end of a search for races.
class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds from_now) : end_(steady_clock::now() + from_now) {}
  bool passed() const { return steady_clock::now() >= end_; }

 private:
  steady_clock::time_point end_;
};

/// Calls attempt(n) with n = 0, 1, ... until it returns that no allocation has failed. Returns the number of failures.
inline int for_each_allocation(const std::function<bool(std::int64_t n)>& attempt) {
  for (int n = 0; n < 1000; ++n) {
    SCOPED_TRACE("allocation " + std::to_string(n) + " fails");
    if (!attempt(n) || ::testing::Test::HasFailure()) return n;
  }
  ADD_FAILURE() << "an allocation still fails in the 1,000th attempt";
  return 0;
}

/// Runs f(index) on `count` threads, which start at the same time, and waits for all of them.
template <class F>
void run_together(int count, F f) {
  std::atomic<int> ready = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      ++ready;
      while (ready < count) std::this_thread::yield();
      f(i);
    });
  }
}

/// Waits until another thread has requested stop(), so that the timer refuses new timeouts.
inline void wait_until_refusing(Timer& timer) {
  EXPECT_TRUE(eventually([&] {
    Timeout probe = timer.try_new_timeout([] {}, kFar);
    probe.cancel();
    return !probe;
  }));
}

/// Returns what() of the Error that f() throws. Adds a failure if f() throws nothing.
template <class Error, class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

/// Returns whether f() throws an Error.
template <class Error, class F>
bool throws(F f) {
  try {
    f();
  } catch (const Error&) {
    return true;
  }
  return false;
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

inline std::string text_of(const Timeout& timeout) {
  std::ostringstream out;
  out << timeout;
  return out.str();
}

/// Checks promise 9: no timeout is counted twice or missed. The timer must be quiet, with `pending` timeouts. Most
/// timers compute stats.pending from the other counters, so that sum always balances. Only `pending` finds a fault.
inline ::testing::AssertionResult is_balanced(const TimerStats& stats, std::int64_t pending = 0) {
  if (stats.pending == pending &&
      stats.scheduled == stats.expired + stats.cancelled + stats.unprocessed + stats.pending) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "scheduled " << stats.scheduled << " != expired " << stats.expired
                                       << " + cancelled " << stats.cancelled << " + unprocessed " << stats.unprocessed
                                       << " + pending " << stats.pending << ", or not " << pending << " are pending";
}

/// Calls attempt(round), which returns how late something was. None may be early or seconds late, but only the best of
/// all must be in time, so that a busy machine fails nothing.
template <class F>
void expect_in_time(int rounds, F attempt) {
  auto best = std::chrono::nanoseconds::max();
  for (int round = 0; round < rounds; ++round) {
    const std::chrono::nanoseconds late = attempt(round);
    EXPECT_GE(late, 0ns);
    EXPECT_LT(late, 5s);
    best = std::min(best, late);
  }
  EXPECT_LT(best, 20ms);
}

/// Cancels the timeout of the task. Returns how long it takes until its cancelled() has been called.
inline std::chrono::nanoseconds time_until_cancelled(Timeout& timeout, RecordingTask& task) {
  const auto begin = steady_clock::now();
  EXPECT_TRUE(timeout.cancel());
  EXPECT_TRUE(task.was_cancelled.wait());
  return steady_clock::now() - begin;
}

/// Threads that come one after the other, and stay until this is destroyed.
class StayingThreads {
 public:
  StayingThreads() = default;
  ~StayingThreads() { end_.count_down(); }
  StayingThreads(const StayingThreads&) = delete;
  StayingThreads& operator=(const StayingThreads&) = delete;

  /// Calls f() on one more thread, and waits for that.
  template <class F>
  void call(F f) {
    Latch done;
    threads_.emplace_back([this, &f, &done] {
      f();
      done.count_down();
      EXPECT_TRUE(end_.wait(10 * kGenerous));
    });
    EXPECT_TRUE(done.wait(10 * kGenerous));
  }

 private:
  Latch end_;
  std::vector<std::jthread> threads_;
};

}  // namespace hwt::test
