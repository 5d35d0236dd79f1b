#pragma once

#include "common/common.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/schedule.h"

namespace schedules {

/// Runs every kind of schedule, except calendar rules, on one ManualTimer that stalls for a while.
inline void show_kinds() {
  using namespace std::chrono_literals;
  using hwt::CatchUp;
  using hwt::Schedule;
  using Time = std::chrono::steady_clock::time_point;
  const std::vector<std::pair<std::string, Schedule>> kinds{
      {"once", Schedule::once(2500ms)},
      {"fixed delay", Schedule::fixed_delay(1s, 2s)},
      {"fixed rate, skip", Schedule::fixed_rate(1s, 1s, CatchUp::Skip)},
      {"fixed rate, once", Schedule::fixed_rate(1s, 1s, CatchUp::Once)},
      {"fixed rate, burst", Schedule::fixed_rate(1s, 1s, CatchUp::Burst)},
      {"sequence", Schedule::sequence({1s, 2s, 3s, 3500ms})},
      {"cycle, limit 4", Schedule::cycle({1s, 3s}).limit(4)},
  };
  constexpr Time kEnd(10s);
  constexpr Time kHeldUpFrom(4100ms);
  constexpr Time kHeldUpTo(7600ms);

  struct Planned {
    std::shared_ptr<hwt::ScheduledTask> task;
    // The due time of the next run. Stored before the run, because next() returns nothing during a run. Empty for
    // later runs of a burst, which follow without a wait.
    std::optional<Time> due;
    std::vector<std::vector<std::string>> table{{"task", "run", "scheduled", "actual", "late"}};
  };
  hwt::ManualTimer timer(10ms, {}, common::give_up);
  std::vector<Planned> all(kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    all[i].task = schedule(timer, kinds[i].second, [&, i] {
      Planned& planned = all[i];
      const std::optional<Time> due = std::exchange(planned.due, std::nullopt);
      planned.table.push_back({kinds[i].first, common::text_of(planned.task->runs()),
                               due ? common::text_of(due->time_since_epoch()) : "made up",
                               common::text_of(timer.now().time_since_epoch()),
                               due ? common::text_of(timer.now() - *due) : ""});
    });
  }
  // Advances from one due time to the next, as an event loop does.
  for (auto wakeup = timer.next_wakeup(); wakeup && *wakeup <= kEnd; wakeup = timer.next_wakeup()) {
    for (Planned& planned : all) planned.due = planned.task->next();
    timer.advance_to(*wakeup > kHeldUpFrom && *wakeup < kHeldUpTo ? kHeldUpTo : *wakeup, 1);
  }

  common::print("Seven schedules on one timer, in simulated time. The timer stalls from " +
                common::text_of(kHeldUpFrom.time_since_epoch()) + " to " +
                common::text_of(kHeldUpTo.time_since_epoch()) + ".\n\n");
  for (const Planned& planned : all) common::print(common::columns(planned.table) + '\n');
}

}  // namespace schedules
