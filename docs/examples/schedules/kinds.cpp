#include <chrono>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "format.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/schedule.h"
#include "parts.h"
#include "table.h"

namespace schedules {
namespace {

using namespace std::chrono_literals;
using time_point = std::chrono::steady_clock::time_point;

struct Planned {
  std::shared_ptr<hwt::ScheduledTask> task;
  time_point due;  // of its next run: asked before the run, since next() looks beyond it afterwards
};

/// Goes from one due time to the next, as an event loop would. Between `stall_begin` and `stall_end` it is held up.
void run_until(hwt::ManualTimer& timer, std::vector<Planned>& all, time_point end, time_point stall_begin,
               time_point stall_end) {
  while (const std::optional<time_point> wakeup = timer.next_wakeup()) {
    if (*wakeup > end) return;
    for (Planned& planned : all) planned.due = planned.task->next().value_or(time_point::max());
    timer.advance_to(*wakeup > stall_begin && *wakeup < stall_end ? stall_end : *wakeup, 1);
  }
}

}  // namespace

void show_kinds(std::ostream& out) {
  using hwt::CatchUp;
  using hwt::Schedule;
  const std::vector<std::pair<std::string, Schedule>> kinds{
      {"once", Schedule::once(2500ms)},
      {"fixed delay", Schedule::fixed_delay(1s, 2s)},
      {"fixed rate, skip", Schedule::fixed_rate(1s, 1s, CatchUp::Skip)},
      {"fixed rate, once", Schedule::fixed_rate(1s, 1s, CatchUp::Once)},
      {"fixed rate, burst", Schedule::fixed_rate(1s, 1s, CatchUp::Burst)},
      {"sequence", Schedule::sequence({1s, 2s, 3s, 3500ms})},
      {"cycle, limit 4", Schedule::cycle({1s, 3s}).limit(4)},
  };

  hwt::ManualTimer timer(10ms);
  std::vector<Planned> all(kinds.size());
  std::vector<Table> tables(kinds.size(), Table({"task", "run", "scheduled", "actual", "late"}));
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    all[i].task = schedule(timer, kinds[i].second, [&, i] {
      const time_point due = all[i].due;
      const time_point now = timer.now();
      tables[i].add({kinds[i].first, std::to_string(all[i].task->runs()), in_seconds(due - time_point()),
                     in_seconds(now - time_point()), in_seconds(now - due)});
    });
  }
  run_until(timer, all, time_point(10s), time_point(4100ms), time_point(7600ms));

  out << "One timer, seven schedules, simulated time. It is held up from 4.10 s to 7.60 s.\n\n";
  for (const Table& table : tables) table.print(out);
}

}  // namespace schedules
