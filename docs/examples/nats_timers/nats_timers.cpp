// The timers of libnats on a timer of c.h. libnats calls its natsTimer_...() through the PLT, so a library that is
// loaded before it replaces them.

#include "nats_timers.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#define EXPORTED [[gnu::visibility("default")]]

extern "C" void nats_setNATSThreadKey();  // of libnats: marks the calling thread as one of its own

struct natsTimer {
  const std::shared_ptr<hwt_timer> wheel;
  const natsTimerFunction callback;
  const natsTimerFunction stop_callback;
  void* const closure;
  std::atomic<int> references{1};  // its owner has one, and so has a pending or running timeout

  std::mutex mutex{};
  // Guarded by `mutex`.
  std::int64_t interval = 0;
  hwt_id timeout = 0;        // the pending one
  bool active = false;       // not stopped
  bool in_callback = false;  // then fire() arms the timer or calls stop_callback
  bool withdrawn = false;    // the timeout was too late to cancel: it waits for `mutex` and must do nothing
};

namespace {

/// The timer behind all natsTimers, from the first one until nats_Close().
struct Wheel {
  std::mutex mutex;
  std::shared_ptr<hwt_timer> timer;
};

Wheel& current() {
  static Wheel& wheel = *new Wheel;  // never destroyed: threads of libnats may outlive main()
  return wheel;
}

/// Returns null without memory or a thread. Throws std::bad_alloc.
std::shared_ptr<hwt_timer> current_timer() {
  Wheel& wheel = current();
  const std::lock_guard lock(wheel.mutex);
  if (!wheel.timer) {
    hwt_options options;
    hwt_options_init(&options);
    options.kind = HWT_HIERARCHICAL_WHEEL;  // libnats has intervals from milliseconds to hours
    options.tick_ns = 1'000'000;
    hwt_timer* made = nullptr;
    if (hwt_create(&options, &made) != 0) return nullptr;
    std::shared_ptr<hwt_timer> timer(made, hwt_destroy);
    if (hwt_start(made) != 0) return nullptr;
    wheel.timer = std::move(timer);
  }
  return wheel.timer;
}

void release(natsTimer& timer) {
  if (timer.references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &timer;
}

std::int64_t nanoseconds(std::int64_t milliseconds) {
  return milliseconds > HWT_NEVER / 1'000'000 ? HWT_NEVER : std::max<std::int64_t>(milliseconds, 0) * 1'000'000;
}

void fire(void* argument);

/// Schedules the next fire(), which gets a reference of the caller. Returns 0 or an errno: ECANCELED after
/// nats_Close(), EPERM in a forked child. Precondition: the mutex is locked.
int try_to_arm(natsTimer& timer) {
  timer.timeout = hwt_add(timer.wheel.get(), nanoseconds(timer.interval), fire, &timer);
  return timer.timeout != 0 ? 0 : errno;
}

/// Schedules the next fire(), which gets a reference of the caller. Returns false after nats_Close() and in a forked
/// child. Ends the program without memory, because natsTimer_Reset() cannot fail. Precondition: the mutex is locked.
bool arm(natsTimer& timer) {
  const int error = try_to_arm(timer);
  if (error != 0 && error != ECANCELED && error != EPERM) {
    std::fprintf(stderr, "nats_timers: %s\n", hwt_last_error());
    std::abort();
  }
  return error == 0;
}

/// Takes the pending timeout back. Returns true if its reference is now the caller's; otherwise fire() or unfired()
/// drops it. Precondition: the mutex is locked.
bool withdraw(natsTimer& timer) {
  if (timer.timeout == 0) return false;
  const bool cancelled = hwt_cancel(timer.wheel.get(), std::exchange(timer.timeout, 0)) == 0;
  if (!cancelled) timer.withdrawn = true;
  return cancelled;
}

/// Calls the stop_callback of a timer that is stopped, and drops the reference of its timeout.
void end(natsTimer& timer) {
  if (timer.stop_callback != nullptr) timer.stop_callback(&timer, timer.closure);
  release(timer);
}

/// The callback of all timeouts. Runs on the worker.
void fire(void* argument) {
  natsTimer& timer = *static_cast<natsTimer*>(argument);
  thread_local const bool known = (nats_setNATSThreadKey(), true);
  static_cast<void>(known);
  std::unique_lock lock(timer.mutex);
  if (std::exchange(timer.withdrawn, false)) {
    lock.unlock();
    release(timer);
    return;
  }
  timer.timeout = 0;
  timer.in_callback = true;
  lock.unlock();
  timer.callback(&timer, timer.closure);
  lock.lock();
  timer.in_callback = false;
  if (timer.active && arm(timer)) return;
  timer.active = false;
  lock.unlock();
  end(timer);
}

/// Called instead of fire() if the timeout was still pending at nats_Close().
void unfired(void*, hwt_callback, void* argument) {
  natsTimer& timer = *static_cast<natsTimer*>(argument);
  std::unique_lock lock(timer.mutex);
  const bool withdrawn = std::exchange(timer.withdrawn, false);
  if (!withdrawn) {
    timer.timeout = 0;
    timer.active = false;
  }
  lock.unlock();
  withdrawn ? release(timer) : end(timer);
}

/// Stops all timers, as libnats does when it is closed. The next natsTimer_Create() makes a new hwt_timer.
void stop_all() {
  Wheel& wheel = current();
  std::unique_lock lock(wheel.mutex);
  const std::shared_ptr<hwt_timer> timer = std::move(wheel.timer);
  wheel.timer = nullptr;
  lock.unlock();
  if (timer) hwt_stop(timer.get(), unfired, nullptr);
}

/// Returns the function of libnats that a function of this library replaces.
template <class Function>
Function* replaced(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

EXPORTED natsStatus natsTimer_Create(natsTimer** timer, natsTimerFunction callback, natsTimerFunction stop_callback,
                                     std::int64_t interval, void* closure) try {
  const std::shared_ptr<hwt_timer> wheel = current_timer();
  if (!wheel) return NATS_SYS_ERROR;
  std::unique_ptr<natsTimer> made(new natsTimer{wheel, callback, stop_callback, closure});
  const std::lock_guard lock(made->mutex);
  made->interval = interval;
  made->active = true;
  made->references = 2;
  const int error = try_to_arm(*made);
  if (error == ENOMEM) return NATS_NO_MEMORY;
  if (error != 0) made->references = 1;
  *timer = made.release();
  return NATS_OK;
} catch (const std::bad_alloc&) {
  return NATS_NO_MEMORY;
}

EXPORTED void natsTimer_Stop(natsTimer* timer) {
  if (timer == nullptr) return;
  std::unique_lock lock(timer->mutex);
  if (!std::exchange(timer->active, false) || timer->in_callback) return;
  if (!withdraw(*timer)) timer->references.fetch_add(1, std::memory_order_relaxed);
  lock.unlock();
  end(*timer);
}

EXPORTED void natsTimer_Reset(natsTimer* timer, std::int64_t interval) {
  if (timer == nullptr) return;
  const std::lock_guard lock(timer->mutex);
  timer->active = true;
  timer->interval = interval;
  if (timer->in_callback) return;
  if (timer->timeout != 0 && hwt_reschedule(timer->wheel.get(), timer->timeout, nanoseconds(interval)) == 0) return;
  if (!withdraw(*timer)) timer->references.fetch_add(1, std::memory_order_relaxed);
  if (!arm(*timer)) timer->references.fetch_sub(1, std::memory_order_relaxed);  // never the last: the caller has one
}

EXPORTED void natsTimer_Release(natsTimer* timer) { release(*timer); }

EXPORTED void natsTimer_Destroy(natsTimer* timer) {
  if (timer == nullptr) return;
  natsTimer_Stop(timer);
  release(*timer);
}

EXPORTED void nats_Close() {
  replaced<void()>("nats_Close")();
  stop_all();
}

EXPORTED natsStatus nats_CloseAndWait(std::int64_t timeout) {
  const natsStatus status = replaced<natsStatus(std::int64_t)>("nats_CloseAndWait")(timeout);
  if (status == NATS_OK || status == NATS_TIMEOUT) stop_all();
  return status;
}

EXPORTED void nats_timers_stats(hwt_stats* stats) {
  const std::lock_guard lock(current().mutex);
  hwt_get_stats(current().timer.get(), stats);
}
}
