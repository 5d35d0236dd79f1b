// Code of a program that is built without exceptions and RTTI. Compiled with -fno-exceptions -fno-rtti.

#include <atomic>
#include <chrono>
#include <coroutine>
#include <functional>
#include <limits>
#include <memory>
#include <thread>

#include "hashed_wheel_timer/coroutine.h"
#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/stop_after.h"

#if defined(__cpp_exceptions) || (defined(__cpp_rtti) && !defined(HWT_TEST_NEEDS_RTTI))
#error "build this file with -fno-exceptions -fno-rtti"
#endif

namespace hwt::no_exceptions {
namespace {

using namespace std::chrono_literals;

class Flag : public TimerTask {
 public:
  explicit Flag(std::shared_ptr<std::atomic<bool>> raised) : raised_(std::move(raised)) {}
  void run(Timeout&) override { *raised_ = true; }

 private:
  std::shared_ptr<std::atomic<bool>> raised_;
};

bool becomes_true(const std::atomic<bool>& flag) {
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (!flag && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
  return flag;
}

struct Detached {
  struct promise_type {
    Detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept {}
  };
};

Detached sleep_far(Timer& timer, std::stop_token stop, std::atomic<bool>& stopped) {
  stopped = co_await sleep_for(timer, 1h, std::move(stop)) == Wake::Stopped;
}

}  // namespace

bool runs_callable_and_task(Timer& timer) {
  const auto callable_ran = std::make_shared<std::atomic<bool>>(false);
  const auto task_ran = std::make_shared<std::atomic<bool>>(false);
  const Timeout callable = timer.try_new_timeout([callable_ran] { *callable_ran = true; }, 0ms);
  const Timeout task = timer.new_timeout(std::make_shared<Flag>(task_ran), 0ms);
  const auto deadline_ran = std::make_shared<std::atomic<bool>>(false);
  const Timeout deadline = timer.try_new_timeout([deadline_ran] { *deadline_ran = true; }, timer.now() - 1ms);
  return callable && task && deadline && becomes_true(*callable_ran) && becomes_true(*task_ran) &&
         becomes_true(*deadline_ran) && callable.is_expired() && task.is_expired() && deadline.is_expired();
}

bool cancels(Timer& timer) {
  Timeout timeout = timer.try_new_timeout([](Timeout&) {}, 1h);
  return timeout && timeout.timer() == &timer && timeout.cancel() && !timeout.cancel() && timeout.is_cancelled();
}

bool bad_arguments_are_null_handles(Timer& timer) {
  const std::chrono::duration<double> nan(std::numeric_limits<double>::quiet_NaN());
  return !timer.try_new_timeout(std::function<void()>(), 1ms) &&
         !timer.try_new_timeout(std::shared_ptr<TimerTask>(), 1ms) && !timer.try_new_timeout([] {}, nan) &&
         !timer.try_new_timeout(std::function<void()>(), timer.now()) &&
         !timer.try_new_timeout(std::shared_ptr<TimerTask>(), timer.now());
}

bool sleeps_and_is_stopped(Timer& timer) {
  StopAfter limit(timer, 1ms);
  std::atomic<bool> stopped = false;
  sleep_far(timer, limit.token(), stopped);
  return becomes_true(stopped) && limit.timed_out();
}

int accepted(Timer& timer, int attempts) {
  int count = 0;
  for (int i = 0; i < attempts; ++i)
    if (timer.try_new_timeout([] {}, 1h)) ++count;
  return count;
}

}  // namespace hwt::no_exceptions
