#pragma once

#include <nats/nats.h>

#include <cstdint>

#include "hashed_wheel_timer/c.h"

/// A timer of libnats. libnats exports these functions, but its installed headers do not declare them.
struct natsTimer;
using natsTimerFunction = void (*)(natsTimer* timer, void* closure);

extern "C" {

/// Makes a timer that calls callback(timer, closure) every `interval` milliseconds until it is stopped. The interval
/// counts from the end of the callback before. Returns NATS_OK, NATS_NO_MEMORY, or NATS_SYS_ERROR if the hwt_timer
/// cannot be made or started. In the forked child of a process with timers, and during nats_Close(), the timer never
/// fires.
natsStatus natsTimer_Create(natsTimer** timer, natsTimerFunction callback, natsTimerFunction stop_callback,
                            std::int64_t interval, void* closure);
/// Stops the timer, and calls its `stop_callback` at once on this thread. If the callback is running, its thread calls
/// `stop_callback` after it has returned. Does nothing if the timer is stopped already.
void natsTimer_Stop(natsTimer* timer);
/// Starts the timer anew with this interval, also if it was stopped. While its callback runs, the interval counts from
/// the end of the callback. Ends the program if there is no memory.
void natsTimer_Reset(natsTimer* timer, std::int64_t interval);
/// Drops a reference. The last one frees the timer.
void natsTimer_Release(natsTimer* timer);
/// Stops the timer and drops the reference of its owner. May be called inside its callback.
void natsTimer_Destroy(natsTimer* timer);

/// Stores the counters of the hwt_timer behind these timers. Only this library has this function.
void nats_timers_stats(hwt_stats* stats);
}
