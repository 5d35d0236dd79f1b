#pragma once

#include "tests/oracle/setup.h"

namespace hwt::oracle {

/// What tasks do with their timer.
class Plans {
 public:
  Plans(Caller& caller, const Setup& setup, Totals& totals, std::deque<Records>& records, Records& of_tasks)
      : caller_(caller), setup_(setup), totals_(totals), records_(records), of_tasks_(of_tasks) {}

  /// In a task, perhaps on a thread of an executor.
  void carry_out(Record& record, Timeout& self) {
    perf::Random random(static_cast<std::uint64_t>(record.started));
    const bool on_worker = setup_.runs_on_worker() && !record.elsewhere;
    const bool may_use = on_worker || setup_.end != End::Destroy;
    Record* const other = records_[random.next() % records_.size()].any_open(random);
    switch (record.plan) {
      case Plan::Throws:
        ++caller_.ledger().thrown;
        throw Thrown();
      case Plan::Schedules:
        if (Record* const next = may_use ? of_tasks_.next() : nullptr; next != nullptr) {
          const auto form = random.next() % 2 == 0 ? Caller::Form::New : Caller::Form::TryAdd;
          caller_.schedule(*next, form, caller_.due_in(random, std::chrono::microseconds(random.between(0, 2'000))));
        }
        return;
      case Plan::Cancels:
        caller_.ledger().expect(!self.cancel() && !self.cancel_and_wait() && self.is_expired() && !self.is_pending(),
                                "a task cannot cancel itself", &record);
        if (other != nullptr && may_use) {
          caller_.cancel(*other, nullptr, on_worker && random.next() % 4 == 0, false, other == &record);
        }
        return;
      case Plan::Moves:
        caller_.ledger().expect(!self.reschedule(1ms), "a task cannot move itself", &record);
        if (other != nullptr && may_use) {
          caller_.move(*other, nullptr, caller_.due_in(random, std::chrono::microseconds(random.between(0, 5'000))),
                       false);
        }
        return;
      case Plan::Stops:
        if (on_worker) expect_no_stop(record);
        return;
      case Plan::Strikes:
        if (setup_.traffic.shortages) strike_this_thread(totals_, random);
        return;
      case Plan::Sleeps:
        std::this_thread::sleep_for(std::chrono::microseconds(random.between(0, 300)));
        return;
      default:
        return;
    }
  }

 private:
  void expect_no_stop(const Record& record) {
    try {
      caller_.timer().stop();
      caller_.ledger().broken("stop() is refused inside a task on the worker", &record);
    } catch (const IllegalState&) {
    }
  }

  Caller& caller_;
  const Setup& setup_;
  Totals& totals_;
  std::deque<Records>& records_;
  Records& of_tasks_;
};

}  // namespace hwt::oracle
