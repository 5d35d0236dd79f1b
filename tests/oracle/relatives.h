#pragma once

// A thread that uses KeyedTimer, RepeatedTimer, schedules, TimeoutScope and StopAfter.

#include "hashed_wheel_timer/keyed_timer.h"
#include "hashed_wheel_timer/repeated_timer.h"
#include "hashed_wheel_timer/schedule.h"
#include "hashed_wheel_timer/stop_after.h"
#include "tests/oracle/lane.h"

namespace hwt::oracle {

/// A function that never overlaps itself, with a least time from the end of a run to the next.
class Beat {
 public:
  Beat(Ledger& ledger, nanoseconds gap) : ledger_(ledger), gap_(gap) {}

  void operator()() {
    const TimePoint now = ledger_.now();
    ledger_.expect(!inside_.exchange(true), "a job never overlaps itself");
    ledger_.expect(now >= earliest_, "a job keeps to its gap");
    ledger_.expect(!ledger_.stopped || !ledger_.runs_on_worker, "no job runs after stop()");
    ++runs;
    ledger_.expect(!is_last, "no job runs after its end");
    if (runs % 4 == 1) std::this_thread::sleep_for(100us);  // so that calls find it under way
    earliest_ = ledger_.now() + gap_;
    inside_ = false;
  }
  bool is_inside() const { return inside_; }
  nanoseconds gap() const { return gap_; }

  std::atomic<std::uint64_t> runs{0};
  std::atomic<bool> is_last{false};

 private:
  Ledger& ledger_;
  const nanoseconds gap_;
  TimePoint earliest_{};  // not atomic, because runs need no lock among themselves
  std::atomic<bool> inside_{false};
};

struct Value {
  Copy copy;
};
using Values = KeyedTimer<std::uint64_t, Value>;

/// These values were returned, by stop() or drain().
inline void returned(const std::vector<std::pair<std::uint64_t, Value>>& values, Ledger& ledger) {
  for (const auto& entry : values) {
    Record& record = entry.second.copy.record();
    ledger.expect(record.returned.fetch_add(1) == 0, "a value is returned once", &record);
  }
}

class Relatives {
 public:
  Relatives(Caller& caller, const Traffic& traffic, Totals& totals, Values& values, const BatchExecutor& elsewhere,
            Records& records, Records& scoped, std::uint64_t seed, std::uint64_t first_key)
      : caller_(caller),
        ledger_(caller.ledger()),
        traffic_(traffic),
        totals_(totals),
        values_(values),
        elsewhere_(elsewhere),
        records_(records),
        scoped_(scoped),
        random_(seed),
        first_key_(first_key) {
    repeated_.emplace("oracle", kGap, caller.timer(),
                      RepeatedTimer::Hooks{.on_trigger = [this] { beat_(); }, .on_destroy = [this] { ++destroyed_; }});
  }
  /// The timer must still be there.
  ~Relatives() {
    if (task_) task_->cancel();
    repeated_.reset();  // waits for a trigger
    ledger_.expect(destroyed_ == 1, "on_destroy runs exactly once");
  }

  void go() {
    for (int i = 0; i < traffic_.steps / 16 && !(ledger_.stopped && random_.next() % 16 == 0); ++i) {
      std::optional<RandomShortage> shortage;
      if (traffic_.shortages && random_.next() % 16 == 0) shortage.emplace(totals_, random_, 5);
      const std::int64_t failed_before = test::Shortage::failed_here();
      try {
        step();
      } catch (const IllegalState&) {
        ledger_.expect(ledger_.stopping, "refused by IllegalState after stop() alone");
      } catch (const RejectedExecution&) {
        ledger_.expect(ledger_.limit > 0, "rejected by a limit alone");
      } catch (const std::bad_alloc&) {
        ledger_.expect(test::Shortage::failed_here() != failed_before, "std::bad_alloc with memory");
      }
    }
  }

 private:
  static constexpr nanoseconds kGap = 300us;
  static constexpr std::size_t kKeys = 64;
  static constexpr std::uint64_t kRuns = 5;  // of a schedule

  void step() {
    ++ledger_.operations;
    const std::uint64_t choice = random_.next() % 64;
    if (choice == 0) return use_scope();
    if (choice == 1) return limit();
    if (choice == 2) return plan();
    choice < 8 ? repeat() : use_values();
  }

  std::chrono::microseconds any_microseconds(std::int64_t most) {
    return std::chrono::microseconds(random_.between(0, most));
  }
  Due due() { return caller_.due_in(random_, any_microseconds(8'000)); }

  void use_values() {
    const std::uint64_t number = random_.next() % kKeys;
    const std::uint64_t key = first_key_ + number;
    Record*& present = present_[number];
    const std::uint64_t choice = random_.next() % 16;
    if (choice < 4) return set(key, present);
    if (choice > 6) return move(key, present);
    if (choice == 6) {
      if (random_.next() % 64 == 0) returned(values_.drain(), ledger_);
      return;
    }
    const std::optional<Value> value = values_.remove(key);
    if (value) end_value(value->copy.record(), present, "remove() returns the present value");
    present = nullptr;
  }

  void set(std::uint64_t key, Record*& present) {
    Record* const record = records_.next();
    if (record == nullptr) return;
    const Due due = this->due();
    record->not_before = due.not_before.time_since_epoch().count();
    if (present != nullptr) Caller::lower(*present, record->not_before);  // it may expire then
    record->note(Act::Schedules);
    switch (values_.set(key, Value{{ledger_, *record}}, due.when)) {
      case KeyedResult::Replaced:
        ledger_.expect(present != nullptr, "set() replaces what is there", record);
        end_value(*present, present, "set() replaces the present value");
        [[fallthrough]];
      case KeyedResult::Added:
        record->accepted = true;
        present = record;
        return;
      case KeyedResult::Rejected:
        return ledger_.expect(ledger_.limit > 0, "set() is rejected by a limit alone", record);
      default:
        return ledger_.expect(ledger_.stopping, "set() is refused after stop() alone", record);
    }
  }

  void end_value(Record& ended, const Record* present, const char* promise) {
    ended.note(Act::Cancelled);
    ledger_.expect(&ended == present && ended.cancels.fetch_add(1) == 0 && ended.runs == 0, promise, &ended);
  }

  void move(std::uint64_t key, Record*& present) {
    const Due due = this->due();
    const std::int64_t after = due.not_before.time_since_epoch().count();
    std::int64_t before = 0;
    if (present != nullptr) {
      before = present->not_before;
      present->note(after < before ? Act::MovesEarlier : Act::MovesLater);
      Caller::lower(*present, after);
    }
    KeyedResult result{};
    try {
      result = values_.move(key, due.when);
    } catch (const std::bad_alloc&) {
      if (present != nullptr) present->not_before = before;
      throw;
    }
    ledger_.expect(result != KeyedResult::Moved || present != nullptr, "move() finds a value that is there");
    ledger_.expect(result != KeyedResult::Rejected || ledger_.limit > 0, "move() is rejected by a limit alone");
    if (present == nullptr) return;
    present->note(result == KeyedResult::Moved ? Act::Moved : Act::MovedTooLate);
    present->not_before = result == KeyedResult::Moved ? after : before;
    if (result == KeyedResult::NotFound) present = nullptr;
  }

  void repeat() {
    const std::uint64_t choice = random_.next() % 6;
    if (choice == 0) return repeated_->restart();
    if (choice == 1) return repeated_->reset(kGap + any_microseconds(2'000));
    if (choice == 2) return repeated_->reset();
    if (choice != 3) return repeated_->start();
    repeated_->stop();
    const std::uint64_t runs = beat_.runs;
    std::this_thread::sleep_for(any_microseconds(1'000));
    // A trigger that was under way may not have counted itself yet.
    ledger_.expect(beat_.runs <= runs + 1 && !repeated_->running(), "nothing triggers after stop()");
  }

  /// Replaces the present schedule.
  void plan() {
    end_plan();
    auto job = std::make_shared<Beat>(ledger_, random_.next() % 2 == 0 ? kGap : 0ns);
    const nanoseconds initial(random_.between(0, 1'000'000));
    Schedule schedule = job->gap() != 0ns
                            ? Schedule::fixed_delay(initial, kGap)
                            : Schedule::fixed_rate(initial, kGap, static_cast<CatchUp>(random_.next() % 3));
    task_ = hwt::schedule(caller_.timer(), std::move(schedule).limit(kRuns), [job] { (*job)(); });
    job_ = std::move(job);
    if (random_.next() % 2 == 0) {
      std::this_thread::sleep_for(any_microseconds(2'000));
      end_plan();
    }
  }
  void end_plan() {
    if (!task_) return;
    if (task_->cancel()) {
      ledger_.expect(!job_->is_inside(), "cancel() of a schedule is true if no run is under way");
      job_->is_last = true;
    }
    ledger_.expect(task_->runs() >= job_->runs && job_->runs <= kRuns, "a schedule counts its runs");
    task_.reset();
  }

  void limit() {
    std::atomic<int> stops = 0;
    bool cancelled = false, timed_out = false;
    {
      StopAfter limit(caller_.timer(), any_microseconds(1'000));
      const std::stop_callback callback(limit.token(), [&] { ++stops; });
      std::this_thread::sleep_for(any_microseconds(1'000));
      cancelled = limit.cancel();
      timed_out = limit.timed_out();
    }
    ledger_.expect(stops <= 1 && (!cancelled || (!timed_out && stops == 0)), "no StopAfter stops after cancel()");
  }

  /// No task of a scope runs after the scope.
  void use_scope() {
    std::array<Record*, 20> members{};
    {
      std::optional<TimeoutScope> scope(std::in_place, caller_.timer());
      if (traffic_.elsewhere && random_.next() % 2 == 0) scope.emplace(caller_.timer(), elsewhere_);
      for (Record*& member : members) {
        member = scoped_.next();
        if (member == nullptr) break;
        caller_.schedule(*member, Caller::Form::Add, due(), &*scope);
        if (random_.next() % 8 == 0) cancel(*scope, *member);
      }
      if (random_.next() % 2 == 0) std::this_thread::sleep_for(any_microseconds(3'000));
      if (random_.next() % 4 == 0) ledger_.expect(scope->cancel_all() <= members.size(), "cancel_all() counts");
    }
    for (Record* member : members) {
      if (member == nullptr) break;
      member->joined = true;
      ledger_.expect(!member->running, "after its scope no task runs", member);
      ledger_.expect(member->copies == 0 || ledger_.stopping, "after its scope no callable is left", member);
      if (member->accepted && !member->has_ended() && !ledger_.stopping) ++member->cancels;
    }
  }
  void cancel(TimeoutScope& scope, Record& member) {
    if (!member.accepted) return;
    member.note(Act::Cancels);
    if (scope.cancel(TimeoutId::from_value(member.id)) != CancelResult::Cancelled) return;
    member.note(Act::Cancelled);
    ledger_.expect(member.cancels.fetch_add(1) == 0 && member.runs == 0 && member.copies == 0,
                   "a scope cancels a timeout before it runs", &member);
  }

  Caller& caller_;
  Ledger& ledger_;
  const Traffic& traffic_;
  Totals& totals_;
  Values& values_;
  const BatchExecutor& elsewhere_;
  Records& records_;  // of the values
  Records& scoped_;
  perf::Random random_;
  const std::uint64_t first_key_;
  std::array<Record*, kKeys> present_{};
  Beat beat_{ledger_, kGap};
  std::atomic<int> destroyed_{0};
  std::optional<RepeatedTimer> repeated_;
  std::shared_ptr<Beat> job_;
  std::shared_ptr<ScheduledTask> task_;
};

}  // namespace hwt::oracle
