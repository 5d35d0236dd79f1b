#pragma once

// Short ways to schedule many timeouts or long tasks, to hear of cancelled(), and to run threads.

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt::test {

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

}  // namespace hwt::test
