// The public headers serve code that is built without exceptions and RTTI; see no_exceptions_code.cpp.

#include "tests/support/test_support.h"

namespace hwt::no_exceptions {

/// True when a callable and a TimerTask that are due at once, and a callable that is overdue, have run.
bool runs_callable_and_task(Timer& timer);
/// True when cancel() and the handle say so.
bool cancels(Timer& timer);
/// True for a null callable, a null task and a NaN delay, with a delay and with a deadline.
bool bad_arguments_are_null_handles(Timer& timer);
/// True when a coroutine that slept has been stopped by a StopAfter, and resumed.
bool sleeps_and_is_stopped(Timer& timer);
/// Number of timeouts accepted out of `attempts`.
int accepted(Timer& timer, int attempts);

}  // namespace hwt::no_exceptions

namespace hwt::test {
namespace {

TEST(NoExceptions, AllOfATimerCanBeUsed) {
  HashedWheelTimer timer(1ms);
  EXPECT_TRUE(no_exceptions::bad_arguments_are_null_handles(timer));
  EXPECT_EQ(timer.stats().scheduled, 0);
  EXPECT_TRUE(no_exceptions::runs_callable_and_task(timer));
  EXPECT_TRUE(no_exceptions::cancels(timer));
  EXPECT_TRUE(no_exceptions::sleeps_and_is_stopped(timer));
  EXPECT_EQ(timer.pending_timeouts(), 0);
  timer.stop();
  EXPECT_EQ(no_exceptions::accepted(timer, 2), 0);
}

TEST(NoExceptions, ARefusalIsANullHandle) {
  HashedWheelTimer limited{{.tick_duration = 1ms, .max_pending_timeouts = 3}};
  EXPECT_EQ(no_exceptions::accepted(limited, 5), 3);
  EXPECT_EQ(limited.stats().rejected, 2);
  HashedWheelTimer without_thread{{.thread_factory = [](std::function<void()>) -> std::thread { throw 1; }}};
  EXPECT_EQ(no_exceptions::accepted(without_thread, 2), 0);
  EXPECT_EQ(without_thread.pending_timeouts(), 0);
}

}  // namespace
}  // namespace hwt::test
