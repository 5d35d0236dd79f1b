#pragma once

// Implemented in no_exceptions_code.cpp, which is compiled with -fno-exceptions -fno-rtti.

namespace hwt {
class Timer;

namespace no_exceptions {

/// Schedules a callable and a TimerTask that are due at once, and a callable that is overdue; true when all have run.
bool runs_callable_and_task(Timer& timer);

/// Schedules far ahead and cancels; true when cancel() and the handle say so.
bool cancels(Timer& timer);

/// True when try_new_timeout() returns a null handle for a null callable, a null task and a NaN delay, with a delay and
/// with a deadline.
bool bad_arguments_are_null_handles(Timer& timer);

/// Number of timeouts accepted out of `attempts`.
int accepted(Timer& timer, int attempts);

/// A coroutine that sleeps until a StopAfter ends its sleep; true when it has been resumed, and stopped.
bool sleeps_and_is_stopped(Timer& timer);

}  // namespace no_exceptions
}  // namespace hwt
