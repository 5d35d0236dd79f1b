// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/c.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/internal/c/c_timer.h"
#include "hashed_wheel_timer/loop_timer.h"

using hwt::internal::CCall;
using hwt::internal::check;
using hwt::internal::CTask;

namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

steady_clock::time_point time_of(std::int64_t ns) noexcept { return steady_clock::time_point(nanoseconds(ns)); }
std::int64_t ns_of(steady_clock::time_point time) noexcept { return nanoseconds(time.time_since_epoch()).count(); }

/// Returns 0, or the error of an exception. `illegal` is the errno for an IllegalState.
template <class Body>
int guarded(CCall& call, int illegal, Body body) noexcept {
  try {
    body();
    return 0;
  } catch (...) {
    return call.fail_by_exception(illegal);
  }
}

/// Like guarded(), for a timer that can be used in this process.
template <class Body>
int use(const hwt_timer* timer, CCall& call, int illegal, Body body) noexcept {
  const int error = check(timer, call);
  return error != 0 ? error : guarded(call, illegal, body);
}

void expect(bool good, const char* text) {
  if (!good) [[unlikely]]
    throw std::invalid_argument(text);
}

/// Like guarded(), for a call that turns the wheel of a timer without a thread. It needs no check(), because the turn
/// makes the timer that of this process.
template <class Body>
int turn(const hwt_timer* timer, CCall& call, Body body) noexcept {
  if (timer == nullptr) return check(timer, call);
  return guarded(call, EDEADLK, [&] {
    expect(timer->threaded == nullptr, "timer: it has a thread (expected: HWT_LOOP or HWT_MANUAL)");
    body();
  });
}

hwt_id add(hwt_timer* timer, hwt::When when, hwt_callback callback, void* argument, const char* caller) noexcept {
  CCall call(caller);
  hwt_id id = 0;
  use(timer, call, ECANCELED, [&] {
    expect(callback != nullptr, "callback: NULL (expected: a function)");
    CTask::Source source{callback, argument};
    const hwt::detail::Scheduled scheduled = hwt::detail::schedule_named(
        *timer->timer, {&CTask::build, &source, hwt::detail::TaskKind::Trivial, true}, when, /*origin*/ "hwt_add");
    if (scheduled.node != nullptr) [[likely]] {
      id = scheduled.value;
    } else {
      call.fail_by_refusal(scheduled);
    }
  });
  return id;
}

int reschedule(hwt_timer* timer, hwt_id id, hwt::When when, const char* caller) noexcept {
  CCall call(caller);
  bool moved = false;
  const int error = use(timer, call, ECANCELED, [&] {
    hwt::Timeout timeout = timer->timer->find(hwt::TimeoutId::from_value(id));
    moved = hwt::detail::reschedule(timeout, when);
  });
  if (moved) return 0;
  if (error == 0) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "id: %llu (expected: that of a pending timeout)",
                  static_cast<unsigned long long>(id));
    call.fail(ESRCH, text.data());
  }
  return -1;
}

int number_of(hwt::CancelResult result) noexcept {
  return result == hwt::CancelResult::Cancelled ? 0 : result == hwt::CancelResult::Running ? 1 : -1;
}

}  // namespace

void hwt_options_init_sized(hwt_options* options, std::size_t size) noexcept {
  if (options == nullptr) {
    CCall("hwt_options_init").fail(EINVAL, "options: NULL (expected: options)");
    return;
  }
  hwt_options all = hwt::internal::default_options();
  all.size = size;
  std::memcpy(options, &all, hwt::internal::is_known_size(size) ? size : sizeof all.size);
}

int hwt_create(const hwt_options* options, hwt_timer** timer) noexcept {
  CCall call("hwt_create");
  return guarded(call, EINVAL, [&] {
    expect(timer != nullptr, "timer: NULL (expected: a place for the timer)");
    *timer = nullptr;
    hwt_options all = hwt::internal::default_options();
    if (options != nullptr) {
      if (!hwt::internal::is_known_size(options->size)) {
        throw std::invalid_argument("size: " + std::to_string(options->size) +
                                    " (expected: " + std::to_string(sizeof all) + ", as hwt_options_init() sets it)");
      }
      std::memcpy(&all, options, options->size);
    }
    *timer = hwt::internal::make_timer(all).release();
  });
}

int hwt_start(hwt_timer* timer) noexcept {
  CCall call("hwt_start");
  return use(timer, call, ECANCELED, [&] {
    if (timer->threaded != nullptr) timer->threaded->start();
  });
}

int hwt_run(hwt_timer* timer) noexcept {
  CCall call("hwt_run");
  return use(timer, call, EDEADLK, [&] {
    expect(timer->threaded != nullptr,
           "timer: it has no thread (expected: HWT_HASHED_WHEEL or HWT_HIERARCHICAL_WHEEL)");
    timer->threaded->run();  // afterwards the timer may be gone
  });
}

hwt_id hwt_add(hwt_timer* timer, std::int64_t delay_ns, hwt_callback callback, void* argument) noexcept {
  return add(timer, nanoseconds(delay_ns), callback, argument, "hwt_add");
}

hwt_id hwt_add_at(hwt_timer* timer, std::int64_t deadline_ns, hwt_callback callback, void* argument) noexcept {
  return add(timer, time_of(deadline_ns), callback, argument, "hwt_add_at");
}

hwt_id hwt_add_wall(hwt_timer* timer, std::int64_t unix_ns, hwt_callback callback, void* argument) noexcept {
  return add(timer, std::chrono::sys_time<nanoseconds>(nanoseconds(unix_ns)), callback, argument, "hwt_add_wall");
}

int hwt_cancel(hwt_timer* timer, hwt_id id) noexcept {
  CCall call("hwt_cancel");
  if (check(timer, call) != 0) return -1;
  return number_of(timer->timer->cancel(hwt::TimeoutId::from_value(id)));
}

int hwt_cancel_and_wait(hwt_timer* timer, hwt_id id) noexcept {
  CCall call("hwt_cancel_and_wait");
  if (check(timer, call) != 0) return -1;
  return number_of(timer->timer->cancel_and_wait(hwt::TimeoutId::from_value(id)));
}

int hwt_reschedule(hwt_timer* timer, hwt_id id, std::int64_t delay_ns) noexcept {
  return reschedule(timer, id, nanoseconds(delay_ns), "hwt_reschedule");
}

int hwt_reschedule_at(hwt_timer* timer, hwt_id id, std::int64_t deadline_ns) noexcept {
  return reschedule(timer, id, time_of(deadline_ns), "hwt_reschedule_at");
}

int hwt_stop(hwt_timer* timer, void (*each)(void* context, hwt_callback callback, void* argument),
             void* context) noexcept {
  // Not use(), which fails in a forked child. There, too, a timer can be stopped.
  CCall call("hwt_stop");
  return guarded(call, EDEADLK, [&] {
    expect(timer != nullptr, "timer: NULL (expected: a timer of hwt_create())");
    for (const hwt::Timeout& timeout : timer->timer->stop()) {
      const CTask::Source& pending = static_cast<CTask&>(timeout.task()).source();
      if (each != nullptr) hwt::internal::call(each, context, pending.callback, pending.argument);
    }
  });
}

void hwt_destroy(hwt_timer* timer) noexcept {
  const CCall call("hwt_destroy");
  delete timer;
}

std::int64_t hwt_now(const hwt_timer* timer) noexcept {
  CCall call("hwt_now");
  return check(timer, call) == 0 ? ns_of(timer->timer->now()) : -1;
}

std::int64_t hwt_pending(const hwt_timer* timer) noexcept {
  CCall call("hwt_pending");
  return check(timer, call) == 0 ? timer->timer->pending_timeouts() : -1;
}

void hwt_get_stats_sized(const hwt_timer* timer, hwt_stats* stats, std::size_t size) noexcept {
  CCall call("hwt_get_stats");
  if (stats == nullptr) {
    call.fail(EINVAL, "stats: NULL (expected: a place for the counters)");
    return;
  }
  std::memset(stats, 0, size);
  if (check(timer, call) != 0) return;
  const hwt::TimerStats now = timer->timer->stats();
  const hwt_stats all = {now.scheduled,
                         now.expired,
                         now.cancelled,
                         now.rejected,
                         now.unprocessed,
                         now.pending,
                         now.ticks,
                         now.wakeups,
                         now.backlog,
                         now.slow_tasks,
                         now.last_lag.count(),
                         now.max_lag.count(),
                         now.running_for.count(),
                         now.busy.count(),
                         now.in_tasks.count()};
  std::memcpy(stats, &all, std::min(size, sizeof all));
}

std::int64_t hwt_next(hwt_timer* timer) noexcept {
  CCall call("hwt_next");
  std::int64_t next = -1;
  turn(timer, call, [&] {
    try {
      std::size_t ran = 0;
      const auto due = timer->loop != nullptr ? timer->loop->run_due(0, ran) : timer->manual->next_wakeup();
      next = due ? ns_of(*due) : HWT_NEVER;
    } catch (const hwt::IllegalState&) {  // inside a callback of a loop's timer
      next = ns_of(timer->timer->now());
    }
  });
  return next;
}

std::int64_t hwt_advance(hwt_timer* timer, std::int64_t now_ns) noexcept {
  CCall call("hwt_advance");
  std::size_t ran = 0;
  const int error = turn(timer, call, [&] {
    if (timer->loop != nullptr) {
      timer->loop->run_due((std::numeric_limits<std::size_t>::max)(), ran);
    } else {
      ran = timer->manual->advance_to(time_of(now_ns));
    }
  });
  return error == 0 ? static_cast<std::int64_t>(ran) : -1;
}

int hwt_on_earlier(hwt_timer* timer, hwt_callback callback, void* argument) noexcept {
  CCall call("hwt_on_earlier");
  return turn(timer, call, [&] {
    std::function<void()> wake;
    if (callback != nullptr) wake = [callback, argument] { hwt::internal::call(callback, argument); };
    if (timer->loop != nullptr) {
      timer->loop->on_earlier(std::move(wake));
    } else {
      timer->manual->on_earlier(std::move(wake));
    }
  });
}

int hwt_poll_timeout(std::int64_t next_ns) noexcept {
  if (next_ns == HWT_NEVER) return -1;
  return hwt::poll_timeout(time_of(next_ns));
}

const char* hwt_last_error() noexcept {
  const CCall call("hwt_last_error");
  return hwt::internal::last_error();
}
