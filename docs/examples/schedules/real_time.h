#pragma once

#include "calendars.h"
#include "common/common.h"
#include "hashed_wheel_timer/calendar.h"
#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/jitter.h"
#include "hashed_wheel_timer/schedule.h"

namespace schedules {

/// Runs a few schedules on a HashedWheelTimer in real time. Returns false if a run was early or missing.
inline bool show_real_time(std::uint64_t runs) {
  using std::chrono::steady_clock;
  using std::chrono::system_clock;
  common::print("The real clocks, a tick of 10 ms:\n\n");
  const auto start = steady_clock::now();

  // The runs so far. Only the timer's worker appends, and this thread reads them after stop().
  std::vector<std::vector<std::string>> journal{{"task", "not before", "actual", "late"}};
  bool early = false;
  const auto add = [&](const std::string& task, std::chrono::nanoseconds due) {  // due: since the start
    const auto now = steady_clock::now() - start;
    journal.push_back({task, common::text_of(due), common::text_of(now), common::text_of(now - due)});
    if (now < due) early = true;
  };

  // A time of day in two or three seconds.
  const auto occurrence = std::chrono::floor<std::chrono::seconds>(system_clock::now()) + 3s;
  const auto time_of_day = occurrence - std::chrono::floor<std::chrono::days>(occurrence);
  const auto jitter = [](std::chrono::nanoseconds wait) { return wait + hwt::jitter::between(0ms, 200ms); };

  hwt::HashedWheelTimer timer({.tick_duration = 10ms, .on_task_error = common::give_up});
  const std::vector<std::shared_ptr<hwt::ScheduledTask>> tasks{
      schedule(timer, hwt::Schedule::once(300ms), [&] { add("once", 300ms); }),
      schedule(timer, hwt::Schedule::fixed_rate(0ms, 250ms, hwt::CatchUp::Burst).limit(runs),
               [&, run = 0]() mutable { add("fixed rate", run++ * 250ms); }),
      schedule(timer, hwt::Schedule::fixed_rate(500ms, 500ms, hwt::CatchUp::Burst).jitter(jitter).limit(2),
               [&, run = 0]() mutable { add("fixed rate with jitter", ++run * 500ms); }),
      schedule(timer, hwt::Schedule::calendar(hwt::calendar::daily(time_of_day, {"UTC"})), [&] {
        const auto late = system_clock::now() - occurrence;
        add("daily at " + in_utc(occurrence).substr(15) + " UTC", steady_clock::now() - start - late);
      })};

  // The last schedule never ends, so one run of it is enough.
  const auto over = [&] {
    return tasks[3]->runs() > 0 && tasks[3]->next() && tasks[0]->done() && tasks[1]->done() && tasks[2]->done();
  };
  const auto give_up = start + runs * 250ms + 60s;
  while (!over() && !common::interrupted() && steady_clock::now() < give_up) {
    std::this_thread::sleep_for(1ms);
    common::show_progress([&] {
      return common::in_seconds(steady_clock::now() - start) + " of the real clocks | " +
             common::counted(tasks[1]->runs(), "run") + " at the fixed rate";
    });
  }
  const bool all = common::interrupted() || (tasks[0]->runs() == 1 && tasks[1]->runs() == runs &&
                                             tasks[2]->runs() == 2 && tasks[3]->next() > steady_clock::now() + 23h);
  timer.stop();
  common::print(common::columns(journal) + '\n');
  return !early && all;
}

}  // namespace schedules
