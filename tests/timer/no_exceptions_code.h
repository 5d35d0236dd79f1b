#pragma once

// Implemented in no_exceptions_code.cpp, which is compiled with -fno-exceptions -fno-rtti.

namespace hwt {
class Timer;

namespace no_exceptions {

/// Schedules a plain callable and a TimerTask that are due at once; true when both have run.
bool runs_callable_and_task(Timer& timer);

/// Schedules far ahead and cancels; true when all handles tell so.
bool cancels(Timer& timer);

/// True when try_new_timeout() gives a null handle for: a null callable, a null task, a NaN delay.
bool bad_arguments_are_null_handles(Timer& timer);

/// Number of timeouts accepted out of `attempts`.
int accepted(Timer& timer, int attempts);

/// A coroutine that sleeps until a StopAfter ends its sleep; true when it has been resumed, and stopped.
bool sleeps_and_is_stopped(Timer& timer);

}  // namespace no_exceptions
}  // namespace hwt
