// Evaluates a calendar rule, and schedules a task by it.

#include "hashed_wheel_timer/calendar.h"

#include <chrono>
#include <cstdio>

#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/schedule.h"

int main() {
  using namespace std::chrono_literals;
  const hwt::calendar::Rule rule = hwt::calendar::daily(9h, {"Europe/Berlin"});
  const hwt::WallTime after = std::chrono::sys_days(std::chrono::year(2026) / 7 / 1);
  const bool asked = rule(after) == after + 7h;

  hwt::ManualTimer timer;
  const auto task = hwt::schedule(timer, hwt::Schedule::calendar(rule), [] {});
  const bool waits = task->next() && *task->next() - timer.now() <= 25h && task->cancel();

  std::puts(asked && waits ? "good" : "wrong");
  return asked && waits ? 0 : 1;
}
