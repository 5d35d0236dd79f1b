// Schedules two timeouts, cancels one and waits for the other.

#include <chrono>
#include <cstdio>
#include <future>

#include "hashed_wheel_timer/hashed_wheel_timer.h"

#if defined(PARENT_WITHOUT_EXCEPTIONS) && (defined(__cpp_exceptions) || defined(__cpp_rtti))
#error "the library passes its own flags on"
#endif

int main() {
  using namespace std::chrono_literals;
  std::promise<hwt::Timeout> ran;
  bool cancelled_ran = false;
  hwt::HashedWheelTimer timer(1ms);

  hwt::Timeout cancelled = timer.new_timeout([&] { cancelled_ran = true; }, 1h);
  hwt::Timeout expiring = timer.new_timeout([&](hwt::Timeout& self) { ran.set_value(self); }, 20ms);
  const bool cancel_won = cancelled.cancel();

  auto result = ran.get_future();
  const bool in_time = result.wait_for(60s) == std::future_status::ready;
  const bool same = in_time && result.get() == expiring && std::chrono::steady_clock::now() >= expiring.deadline();
  const bool none_left = timer.stop().empty() && timer.pending_timeouts() == 0;

  const bool good =
      cancel_won && cancelled.is_cancelled() && same && expiring.is_expired() && none_left && !cancelled_ran;
  std::puts(good ? "good" : "wrong");
  return good ? 0 : 1;
}
