/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The C interface of hashed_wheel_timer: for programs in C99 and later, in C++ before C++20, and for other languages.
 * Link with hashed_wheel_timer_c.
 *
 *   hwt_timer* timer;
 *   if (hwt_create(NULL, &timer) != 0) die(hwt_last_error());
 *   hwt_id id = hwt_add(timer, 250000000, fail_request, request);
 *   ...
 *   if (hwt_cancel(timer, id) == 0) deliver_answer(request);
 *
 * Times are nanoseconds. Deadlines are times of CLOCK_MONOTONIC, except those of an HWT_MANUAL timer.
 * Unless a function says otherwise, any thread may call it, also inside a callback. A signal handler must not call any
 * of them. A callback that throws a C++ exception ends the program with a line on stderr. So does one that calls
 * pthread_exit(), or whose thread is cancelled by pthread_cancel().
 * A call with a wrong argument changes nothing, and hwt_last_error() names the argument. A call that fails sets errno.
 * Any other call leaves errno as it is, also hwt_cancel() and hwt_cancel_and_wait() of a stale id.
 *
 * In the child of a fork(), a timer that the parent has started is the parent's. hwt_create() starts HWT_LOOP and
 * HWT_MANUAL. Only hwt_stop() and hwt_destroy() work there; other calls fail with EPERM. The child takes over an
 * HWT_LOOP or HWT_MANUAL timer by hwt_next(), hwt_advance() or hwt_on_earlier(), outside a callback, unless it was
 * stopped. Then all calls work. At the fork no other thread of the parent may have been in a call or a callback of that
 * timer. */

/* NOLINTBEGIN(modernize-deprecated-headers): for C */
#include <stddef.h>
#include <stdint.h>
/* NOLINTEND(modernize-deprecated-headers) */

#if defined(_WIN32) && defined(HWT_SHARED)
#ifdef HWT_BUILDING
#define HWT_C_API __declspec(dllexport)
#else
#define HWT_C_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
/** Marks the functions that the library exports. */
#define HWT_C_API __attribute__((visibility("default")))
#else
#define HWT_C_API
#endif

#if defined(__cplusplus) && __cplusplus >= 201103L
#define HWT_C_NOEXCEPT noexcept
#else
/** The functions throw no C++ exceptions. */
#define HWT_C_NOEXCEPT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** A timer. Made by hwt_create(), ended by hwt_destroy(). */
typedef struct hwt_timer hwt_timer;

/** Names one timeout of one timer: a number that owns nothing and never names a second timeout. A stale id is harmless.
 * 0 names no timeout. */
typedef uint64_t hwt_id;

/** A function of the program, called with the argument that came with it. */
typedef void (*hwt_callback)(void* argument);

/** A time or a delay that never comes. */
#define HWT_NEVER INT64_MAX

/** The tick of the kind: 100 ms with a thread, 1 ms without. */
#define HWT_DEFAULT_TICK (-1)

/** The kinds of timers. */
enum {
  /** A worker thread and one wheel, as in Netty: for request timeouts. Ticks from 1 ms on. */
  HWT_HASHED_WHEEL = 0,
  /** A worker thread and a hierarchy of wheels: for far timeouts, and for ticks from 1 us on. */
  HWT_HIERARCHICAL_WHEEL = 1,
  /** No thread: an event loop calls hwt_next() and hwt_advance(). The clock is CLOCK_MONOTONIC. Any tick. */
  HWT_LOOP = 2,
  /** No thread and no clock: hwt_advance() passes the time. For tests and simulations. Any tick. */
  HWT_MANUAL = 3
};

/** Options of a timer. Call hwt_options_init() first, and then change single members. Later versions add members at the
 * end. */
typedef struct hwt_options {
  /** The size of this structure in the calling program. */
  size_t size;
  /** HWT_HASHED_WHEEL, the default, or another kind. */
  int kind;
  /** The length of a tick: HWT_DEFAULT_TICK by default. A callback is late by up to a tick. hwt_create() raises a tick
   * below the shortest of the kind to that, with a line on stderr. It refuses 0 and other negative ticks.
   * HWT_HASHED_WHEEL: a revolution of the wheel must fit into an int64_t. */
  int64_t tick_ns;
  /** The number of buckets of the wheel: 512 by default. HWT_HIERARCHICAL_WHEEL: the slots of each level, where 512
   * means 64. Other kinds ignore it. */
  uint32_t ticks_per_wheel;
  /** The number of pending timeouts beyond which hwt_add() fails with EAGAIN. 0 or less, the default: no limit. */
  int64_t max_pending;
  /** Callbacks that run longer on the worker are counted in hwt_stats and reported on stderr. 0, the default: only a
   * line on stderr if the callbacks of a tick have held the worker for more than a second. HWT_NEVER: off. */
  int64_t slow_task_ns;
  /** Called on the worker for each expired callback. It must arrange that run(argument) is called once, on any thread.
   * If its queue is full, it calls run(argument) itself. hwt_stop() and hwt_destroy() do not wait for that call, which
   * may come after hwt_destroy(). Without memory for the job the callback runs on the worker, with a line on stderr.
   * NULL, the default: callbacks run on the worker. */
  void (*executor)(void* context, hwt_callback run, void* argument);
  /** The first argument of `executor`. */
  void* executor_context;
  /** Not 0: a delay is measured by clock_gettime(). 0, the default: by the cycle counter of the processor where that is
   * safe. Then a callback is up to 4 us later, and never earlier. */
  int exact_clock;
  /** HWT_MANUAL: the time at which the clock begins, 0 by default. Other kinds ignore it. */
  int64_t start_ns;
} hwt_options;

/** Counters of a timer. Later versions add members at the end. */
typedef struct hwt_stats {
  int64_t scheduled;      /**< timeouts that hwt_add() and its kin accepted */
  int64_t expired;        /**< timeouts whose callback has started, or was handed to the executor */
  int64_t cancelled;      /**< timeouts that were cancelled; not those that the executor had by then */
  int64_t rejected;       /**< calls refused because of max_pending; not in `scheduled` */
  int64_t unprocessed;    /**< timeouts that were pending when the timer was stopped */
  int64_t pending;        /**< timeouts that have not ended */
  int64_t ticks;          /**< processed ticks */
  int64_t wakeups;        /**< wake-ups of the worker; without a thread: hwt_advance(), and hwt_next() of HWT_LOOP */
  int64_t backlog;        /**< entries that wait for the worker, cancelled ones included */
  int64_t slow_tasks;     /**< callbacks that ran longer than slow_task_ns */
  int64_t last_lag_ns;    /**< from the end of the latest tick with a callback until all its callbacks had run */
  int64_t max_lag_ns;     /**< the largest last_lag_ns */
  int64_t running_for_ns; /**< how long the worker has been running the callbacks of this tick, or with slow_task_ns
                               the present one; 0 if none runs */
  int64_t busy_ns;        /**< how long the worker was awake; HWT_LOOP: the time of calls that ran a callback;
                               HWT_MANUAL: both this and in_tasks_ns are 0 */
  int64_t in_tasks_ns;    /**< the part of busy_ns in callbacks, or handing them to the executor */
} hwt_stats;

/** Sets `size` bytes of options to their defaults. For other languages than C; see hwt_options_init(). If this version
 * does not know `size`, the function sets only the member `size`, and hwt_create() then fails. */
HWT_C_API void hwt_options_init_sized(hwt_options* options, size_t size) HWT_C_NOEXCEPT;

/** Sets all options to their defaults. */
static inline void hwt_options_init(hwt_options* options) HWT_C_NOEXCEPT {
  hwt_options_init_sized(options, sizeof *options);
}

/** Makes a timer and stores it in `*timer`. NULL as `options` means all defaults. The first timeout starts the worker.
 * Returns 0, EINVAL for a wrong option, ENOMEM, or EAGAIN without a free pthread key. After an error `*timer` is NULL.
 */
HWT_C_API int hwt_create(const hwt_options* options, hwt_timer** timer) HWT_C_NOEXCEPT;

/** Starts the worker. Otherwise the first timeout starts it. Returns 0, EINVAL, EAGAIN if the system gives no thread,
 * ENOMEM, ECANCELED after hwt_stop(), or EPERM. Returns 0 for a timer without a thread. */
HWT_C_API int hwt_start(hwt_timer* timer) HWT_C_NOEXCEPT;

/** Turns the wheel on the calling thread, until another thread calls hwt_stop(), or a callback calls hwt_destroy(). For
 * programs that make their threads themselves. Starts the timer if it has not started. If its worker runs already,
 * takes over from it after its present callbacks. Returns at once after hwt_stop(). Join the thread after hwt_stop(),
 * before hwt_destroy(). Returns 0, or EINVAL for a timer without a thread, EDEADLK on a worker and while another thread
 * is in hwt_run(), or EPERM. */
HWT_C_API int hwt_run(hwt_timer* timer) HWT_C_NOEXCEPT;

/** Calls callback(argument) once, `delay_ns` from now or up to a tick later, never earlier. A negative delay is due
 * now. Returns the id, or 0 with errno: EINVAL for NULL, EAGAIN at max_pending or without a thread for the worker,
 * ENOMEM, ECANCELED after hwt_stop(), or EPERM. Takes no lock, and rarely allocates memory. */
HWT_C_API hwt_id hwt_add(hwt_timer* timer, int64_t delay_ns, hwt_callback callback, void* argument) HWT_C_NOEXCEPT;

/** Calls callback(argument) once at `deadline_ns` or up to a tick later, never earlier. A deadline that has passed is
 * due now. Reads no clock except to start the worker. Returns what hwt_add() returns. */
HWT_C_API hwt_id hwt_add_at(hwt_timer* timer, int64_t deadline_ns, hwt_callback callback,
                            void* argument) HWT_C_NOEXCEPT;

/** Calls callback(argument) once when the wall clock shows `unix_ns`, nanoseconds since 1970, or up to a tick later,
 * not earlier. The time is converted now. If somebody sets the wall clock later, or the machine is suspended, the
 * timeout does not follow. INT64_MAX is never due. The clock of HWT_MANUAL has no relation to the wall clock. Returns
 * what hwt_add() returns. */
HWT_C_API hwt_id hwt_add_wall(hwt_timer* timer, int64_t unix_ns, hwt_callback callback, void* argument) HWT_C_NOEXCEPT;

/** Cancels a timeout. Returns 0 if its callback has not run and never will. Returns 1 if it runs now, on this thread or
 * another, or if the executor has it. Returns -1 otherwise, also for a number that was never an id. A stale id is
 * no error, so the function leaves hwt_last_error() as it is. Returns -1 with errno EINVAL for a NULL timer, and with
 * EPERM in a forked child: to tell these from a stale id, set errno to 0 before the call. Takes no lock and waits for
 * no thread. */
HWT_C_API int hwt_cancel(hwt_timer* timer, hwt_id id) HWT_C_NOEXCEPT;

/** Cancels a timeout, and waits until no thread runs its callback, so that the argument can be freed.
 * Returns 0 if the callback has not run and never will, -1 if it has run or the id names no timeout, and 1 only inside
 * the callback itself. Do not hold a lock that the callback takes. A callback that the executor has not run yet never
 * runs. A stale id is no error, so the function leaves hwt_last_error() as it is. Returns -1 with errno EINVAL for a
 * NULL timer, and with EPERM in a forked child: to tell these from a stale id, set errno to 0 before the call. */
HWT_C_API int hwt_cancel_and_wait(hwt_timer* timer, hwt_id id) HWT_C_NOEXCEPT;

/** Moves a timeout to `delay_ns` from now. Returns 0 if the callback will run once, and not before that. Returns -1 if
 * it has started or the id names no pending timeout, with errno ESRCH; or with EINVAL, ENOMEM or EPERM. */
HWT_C_API int hwt_reschedule(hwt_timer* timer, hwt_id id, int64_t delay_ns) HWT_C_NOEXCEPT;

/** Moves a timeout to `deadline_ns`, and reads no clock. Returns what hwt_reschedule() returns. */
HWT_C_API int hwt_reschedule_at(hwt_timer* timer, hwt_id id, int64_t deadline_ns) HWT_C_NOEXCEPT;

/** Ends the timer for good. Waits for a callback that runs on the worker. Then calls each(context, callback, argument),
 * on this thread, for every timeout that was still pending, so that the argument can be freed. `each` may be NULL.
 * Returns 0; EINVAL for a NULL timer; EDEADLK inside a callback on the worker; ENOMEM, and then call it again. A second
 * call returns 0 and calls nothing, and so does a call in a forked child on a timer of the parent. hwt_add()
 * fails afterwards. */
HWT_C_API int hwt_stop(hwt_timer* timer, void (*each)(void* context, hwt_callback callback, void* argument),
                       void* context) HWT_C_NOEXCEPT;

/** Stops the timer and frees it. Pending callbacks never run. Waits for a callback that runs on the worker, unless it
 * is called inside that callback. Must not race other calls on the timer. NULL is allowed. */
HWT_C_API void hwt_destroy(hwt_timer* timer) HWT_C_NOEXCEPT;

/** Returns the time of the timer's clock; -1 with errno EINVAL for NULL, or EPERM. A timer of HWT_MANUAL that begins
 * before zero can have the time -1: to tell that from an error, set errno to 0 before the call. */
HWT_C_API int64_t hwt_now(const hwt_timer* timer) HWT_C_NOEXCEPT;

/** Returns the number of timeouts that are pending; -1 with errno EINVAL for NULL, or EPERM. */
HWT_C_API int64_t hwt_pending(const hwt_timer* timer) HWT_C_NOEXCEPT;

/** Stores the counters in the first `size` bytes of `*stats`. For other languages than C; see hwt_get_stats(). Members
 * that this version does not know become 0. After EINVAL for a NULL timer and after EPERM all of them are 0. */
HWT_C_API void hwt_get_stats_sized(const hwt_timer* timer, hwt_stats* stats, size_t size) HWT_C_NOEXCEPT;

/** Stores the counters in `*stats`. It adds up the counters of all threads, so do not call it for every request. */
static inline void hwt_get_stats(const hwt_timer* timer, hwt_stats* stats) HWT_C_NOEXCEPT {
  hwt_get_stats_sized(timer, stats, sizeof *stats);
}

/** Returns when hwt_advance() must be called next: never later than the first callback is due. Returns HWT_NEVER if
 * nothing that is pending will ever be due, and -1 with errno EINVAL for NULL or a timer with a thread, or EPERM.
 * Inside a callback it returns the present time. -1 can be a time; see hwt_now(). */
HWT_C_API int64_t hwt_next(hwt_timer* timer) HWT_C_NOEXCEPT;

/** Calls the callbacks that are due at `now_ns`, in the order of ticks, and returns their number. An HWT_LOOP timer
 * reads CLOCK_MONOTONIC instead, and ignores `now_ns`. Time never goes back: an earlier `now_ns` counts as the timer's
 * time. Returns -1 with errno EINVAL for NULL or a timer with a thread, EDEADLK inside a callback, or EPERM. One thread
 * at a time runs callbacks; others wait. */
HWT_C_API int64_t hwt_advance(hwt_timer* timer, int64_t now_ns) HWT_C_NOEXCEPT;

/** Sets the function that wakes the loop, so that it calls hwt_next() and hwt_advance() again. A thread calls it when
 * it makes something due before the time that hwt_next() last returned. A call may turn out to be unnecessary. All
 * threads together make at most one call until hwt_next() is called again, or hwt_advance() of an HWT_LOOP timer.
 * The hwt_stop() that ends the timer makes one more call, also if the loop does not sleep. If one of these three comes
 * during a slow call, two threads may call the function at a time.
 * The function must not wait, destroy the timer or call hwt_on_earlier(). A NULL function ends the calls. A new
 * function is called at once if there is such a reason already. Returns 0; EINVAL for a NULL timer or a timer with a
 * thread; EDEADLK inside a callback; ENOMEM; EPERM. */
HWT_C_API int hwt_on_earlier(hwt_timer* timer, hwt_callback callback, void* argument) HWT_C_NOEXCEPT;

/** Returns the time from now until `next_ns` in milliseconds, rounded up, for poll() and epoll_wait(). Returns -1,
 * which means for ever, for HWT_NEVER. Reads CLOCK_MONOTONIC. */
HWT_C_API int hwt_poll_timeout(int64_t next_ns) HWT_C_NOEXCEPT;

/** Returns one line on the latest error of this thread: the function, the argument, its value and the valid range.
 * Options have their C++ names there, such as tick_duration for tick_ns. A call that succeeds leaves the line as it is.
 * So do hwt_cancel() and hwt_cancel_and_wait() for a stale id, because that is no error.
 * Returns "" before the first error. The text is valid until the next call of this interface on this thread. */
HWT_C_API const char* hwt_last_error(void) HWT_C_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif
