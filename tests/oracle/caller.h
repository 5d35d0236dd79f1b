#pragma once

// Calls of a timer, each with the promises about its result.

#include "hashed_wheel_timer/batch_executor.h"
#include "hashed_wheel_timer/timeout_scope.h"
#include "perf/random.h"
#include "tests/oracle/ledger.h"

namespace hwt::oracle {

/// A time that was chosen at random.
struct Due {
  When when;
  TimePoint not_before;
  std::optional<TimePoint> point = {};  // what Timeout::deadline() is to return
  Leeway leeway = {};
};

class Caller {
 public:
  enum class Form { New, TryNew, NewTrivial, NewShared, TryShared, NewLarge, Add, TryAdd, AddTrivial, AddLarge, AddOn };
  static constexpr int kForms = static_cast<int>(Form::AddOn) + 1;

  /// `has_wall_clock`: points of the wall clock mean something to the timer.
  Caller(Timer& timer, Ledger& ledger, const BatchExecutor& elsewhere, bool has_wall_clock)
      : timer_(timer), ledger_(ledger), elsewhere_(elsewhere), has_wall_clock_(has_wall_clock) {}

  Timer& timer() const { return timer_; }
  Ledger& ledger() const { return ledger_; }

  /// A point of time from now on, as a delay, a point of the timer's clock, or one of the wall clock.
  Due due_in(perf::Random& random, nanoseconds from_now) const {
    const TimePoint now = ledger_.now();
    const Leeway leeway(random.next() % 16 == 0 ? 5ms : 0ms);
    switch (random.next() % (has_wall_clock_ ? 8 : 7)) {
      case 7:
        return {std::chrono::system_clock::now() + from_now, now + from_now, {}, leeway};
      case 6:
      case 5:
      case 4:
        return {from_now, now + std::max(from_now, 0ns), {}, leeway};
      default:
        return {now + from_now, now + from_now, now + from_now, leeway};
    }
  }

  /// Schedules the timeout of a new record. Returns whether it was accepted.
  bool schedule(Record& record, Form form, const Due& due, TimeoutScope* scope = nullptr) {
    record.is_shared_task = form == Form::NewShared || form == Form::TryShared;
    record.is_trivial = scope == nullptr && (form == Form::NewTrivial || form == Form::AddTrivial);
    record.by_handle = scope == nullptr && form < Form::Add;
    record.elsewhere = scope != nullptr || form == Form::AddOn;  // a scope may have an executor
    record.not_before = due.not_before.time_since_epoch().count();
    const bool had_stopped = ledger_.stopped;
    const std::int64_t failed_before = failures();
    record.note(Act::Schedules);
    ++ledger_.operations;
    bool limited = false;
    TimeoutId id;
    try {
      id = scope != nullptr ? scope->add(Task(ledger_, record), due.when, due.leeway) : call(record, form, due);
      record.accepted = id || record.handle;
      limited = !record.accepted;
      ledger_.unknown += limited ? 1 : 0;
    } catch (const IllegalState&) {
      ledger_.expect(ledger_.stopping, "a timer refuses by IllegalState after stop() alone", &record);
    } catch (const RejectedExecution&) {
      limited = true;
      ++ledger_.at_limit;
      ledger_.expect(ledger_.limit > 0, "a timer without a limit rejects nothing", &record);
    } catch (const std::bad_alloc&) {  // perhaps for the message of a RejectedExecution
      ++ledger_.unknown;
      ledger_.expect(failures() != failed_before, "a timer with memory throws no std::bad_alloc", &record);
    }
    if (!record.accepted) {
      record.note(Act::Refused);
      ledger_.expect(!limited || ledger_.limit > 0 || failures() != failed_before || ledger_.stopping,
                     "a timer refuses nothing without a reason", &record);
      ledger_.expect(record.copies == 0 && record.runs == 0, "a refused callable is gone, and has not run", &record);
      return false;
    }
    record.note(Act::Accepted);
    ledger_.expect(!had_stopped, "a timer accepts nothing after stop()", &record);
    if (record.is_far && ledger_.limit > 0) {
      ledger_.expect(++ledger_.far <= ledger_.limit, "no more are pending than max_pending_timeouts", &record);
    }
    if (record.handle && due.point && !due.leeway.is_given() && !record.is_open) {
      ledger_.expect(record.handle.deadline() == *due.point, "deadline() is the point that was given", &record);
    }
    if (id) record.id.store(id.value(), std::memory_order_release);
    return true;
  }

  /// `handle`: null for the id of the record. `alone`: no other thread cancels it. `inside`: the task of the record.
  bool cancel(Record& record, Timeout* handle, bool waits, bool alone, bool inside = false) {
    const bool has_ended = record.has_ended();
    if (record.is_far && ledger_.limit > 0 && alone) --ledger_.far;
    record.note(waits ? Act::CancelsAndWaits : Act::Cancels);
    ++ledger_.operations;
    CancelResult cancelled{};
    if (handle != nullptr) {
      const bool is_cancelled = waits ? handle->cancel_and_wait() : handle->cancel();
      cancelled = is_cancelled ? CancelResult::Cancelled : CancelResult::Gone;
    } else {
      const TimeoutId id = TimeoutId::from_value(record.id.load(std::memory_order_acquire));
      cancelled = waits ? timer_.cancel_and_wait(id) : timer_.cancel(id);
    }
    if (waits && !inside) check_joined(record);
    if (cancelled != CancelResult::Cancelled) {
      record.note(Act::CancelledTooLate);
      check_too_late(record, handle, alone && !inside && cancelled == CancelResult::Gone);
      return false;
    }
    record.note(Act::Cancelled);
    ledger_.expect(!has_ended && record.cancels.fetch_add(1) == 0 && record.runs == 0,
                   "cancel() returns true once, and only if the task has not run", &record);
    ledger_.expect(record.copies == 0 || record.is_shared_task, "cancel() destroys the callable", &record);
    ledger_.expect(handle == nullptr || waits || handle->is_cancelled(), "is_cancelled() after cancel()", &record);
    return true;
  }

  /// `alone`: no other thread moves it.
  bool move(Record& record, Timeout* handle, const Due& due, bool alone) {
    const bool has_ended = record.has_ended();
    const std::int64_t before = record.not_before;
    const std::int64_t after = due.not_before.time_since_epoch().count();
    const std::int64_t failed_before = failures();
    const TimePoint deadline = handle != nullptr ? handle->deadline() : TimePoint();
    record.note(after < before ? Act::MovesEarlier : Act::MovesLater);
    lower(record, after);
    ++ledger_.operations;
    bool moved = false, failed = false;
    try {
      moved = handle != nullptr ? handle->reschedule(due.when, due.leeway)
                                : timer_.reschedule(TimeoutId::from_value(record.id.load()), due.when, due.leeway);
    } catch (const std::bad_alloc&) {
      failed = true;
      ledger_.expect(failures() != failed_before, "a timer with memory throws no std::bad_alloc", &record);
      ledger_.expect(handle == nullptr || !alone || handle->deadline() == deadline,
                     "reschedule() without memory changes nothing", &record);
    }
    if (alone) record.not_before = moved ? after : before;
    record.note(moved ? Act::Moved : Act::MovedTooLate);
    ledger_.expect(!moved || !has_ended, "a timeout that has ended is not moved", &record);
    if (moved || failed) return moved;
    ledger_.expect(handle == nullptr || !handle->is_pending(), "only a timeout that has ended is not moved", &record);
    check_too_late(record, handle, false);
    return false;
  }

  /// From now on the task may run that early.
  static void lower(Record& record, std::int64_t to) {
    for (std::int64_t seen = record.not_before; to < seen && !record.not_before.compare_exchange_weak(seen, to);) {
    }
  }

  /// A timeout that has ended, and its task has run to its end.
  void check_stale(Record& record) {
    Timeout handle = record.handle;
    const TimeoutId id = TimeoutId::from_value(record.id);
    ++ledger_.operations;
    ledger_.expect(!handle.cancel() && !handle.reschedule(1ms) && !handle.is_pending() && !handle.cancel_and_wait(),
                   "a handle stays stale for ever", &record);
    ledger_.expect(timer_.cancel(id) != CancelResult::Cancelled && !timer_.reschedule(id, 1ms) &&
                       timer_.cancel_and_wait(id) == CancelResult::Gone && !timer_.find(id),
                   "an id stays stale for ever", &record);
  }

 private:
  static std::int64_t failures() noexcept { return test::Shortage::failed_here(); }

  TimeoutId call(Record& record, Form form, const Due& due) {
    Task task(ledger_, record);
    const auto shared = [&] { return std::make_shared<SharedTask>(ledger_, record); };
    switch (form) {
      case Form::New:
        record.handle = timer_.new_timeout(std::move(task), due.when, due.leeway);
        return {};
      case Form::TryNew:
        record.handle = timer_.try_new_timeout(std::move(task), due.when, due.leeway);
        return {};
      case Form::NewTrivial:
        record.handle = timer_.new_timeout(TrivialTask{&ledger_, &record}, due.when, due.leeway);
        return {};
      case Form::AddTrivial:
        return timer_.add(TrivialTask{&ledger_, &record}, due.when, due.leeway);
      case Form::NewShared:
        record.handle = timer_.new_timeout(shared(), due.when, due.leeway);
        return {};
      case Form::TryShared:
        record.handle = timer_.try_new_timeout(shared(), due.when, due.leeway);
        return {};
      case Form::NewLarge:
        record.handle = timer_.new_timeout(LargeTask(task), due.when, due.leeway);
        return {};
      case Form::Add:
        return timer_.add(std::move(task), due.when, due.leeway);
      case Form::AddLarge:
        return timer_.add(LargeTask(task), due.when, due.leeway);
      case Form::AddOn:
        return timer_.add(on(elsewhere_, std::move(task)), due.when, due.leeway);
      default:
        return timer_.try_add(std::move(task), due.when, due.leeway);
    }
  }

  void check_joined(Record& record) {
    record.joined = true;
    ledger_.expect(!record.running, "after cancel_and_wait() the task does not run", &record);
    ledger_.expect(record.copies == 0 || record.is_shared_task || ledger_.stopping,
                   "after cancel_and_wait() the callable is gone", &record);
  }

  /// `is_gone`: the call says that the timeout has ended, and this thread alone cancels it.
  void check_too_late(Record& record, Timeout* handle, bool is_gone) {
    if (handle != nullptr) {
      ledger_.expect(handle->is_expired() != handle->is_cancelled() && !handle->is_pending(),
                     "a call is too late only if the timeout has ended", &record);
    } else if (is_gone && !ledger_.stopping && !ledger_.may_drop) {
      ledger_.expect(record.has_ended() && !record.running, "a timeout is Gone only if it has ended", &record);
    }
  }

  Timer& timer_;
  Ledger& ledger_;
  const BatchExecutor& elsewhere_;
  const bool has_wall_clock_;
};

}  // namespace hwt::oracle
