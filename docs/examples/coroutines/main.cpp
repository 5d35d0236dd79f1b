#include <coroutine>
#include <cstdio>
#include <latch>

#include "hashed_wheel_timer/coroutine.h"
#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/stop_after.h"

using namespace std::chrono_literals;

/// A coroutine type. Those of cppcoro, folly, libcoro or stdexec work as well. An asio::awaitable can
/// await only operations of Asio, such as hwt::net::async_wait().
struct Detached {
  struct promise_type {
    Detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    // Goes to the timer's on_task_error. If a stop request resumed the coroutine, the exception ends the program.
    void unhandled_exception() { throw; }
  };
};

/// Waits for a service that takes `service`, but at most 100 ms.
Detached ask(hwt::Timer& timer, int request, std::chrono::milliseconds service, std::latch& done) {
  hwt::StopAfter limit(timer, 100ms);
  const hwt::Wake wake = co_await hwt::sleep_for(timer, service, limit.token());
  std::printf("request %d %s\n", request, wake == hwt::Wake::Expired ? "answered" : "timed out");
  done.count_down();
}

int main() {
  std::latch done(2);
  hwt::HashedWheelTimer timer(1ms);
  ask(timer, 1, 10ms, done);
  ask(timer, 2, 1h, done);
  done.wait();
  timer.stop();
}
