// Compares the occurrences of fixed_rate, fixed_delay, sequence and cycle with occurrences that are counted one by one.
// Some runs begin late, or take long.

#include "hashed_wheel_timer/internal/recurring/timetable.h"
#include "hashed_wheel_timer/schedule.h"
#include "tests/fuzz/counted.h"
#include "tests/fuzz/targets.h"

namespace hwt::fuzz {

using internal::Occurrences;
using std::chrono::nanoseconds;

namespace {

nanoseconds any_gap(Input& input) {
  switch (input.below(4)) {
    case 0:
      return nanoseconds(1 + input.up_to(255));
    case 1:
      return std::chrono::milliseconds(1 + input.up_to(65534));
    case 2:
      return nanoseconds(nanoseconds::max().count() >> input.below(60));
    default:
      return std::chrono::hours(1 + input.up_to(255));
  }
}

}  // namespace

void schedules(Input& input) {
  const CatchUp catch_up = input.one_of({CatchUp::Skip, CatchUp::Once, CatchUp::Burst});
  const TimePoint start(nanoseconds(input.one_in(2) ? input.number<std::int32_t>() : input.number<std::int64_t>()));
  std::vector<nanoseconds> gaps;
  for (auto left = std::max<std::uint64_t>(1, input.below(4)); left > 0; --left) gaps.push_back(any_gap(input));
  nanoseconds shortest = gaps.front();
  for (const nanoseconds gap : gaps) shortest = std::min(shortest, gap);
  const nanoseconds initial = input.one_in(2) ? any_gap(input) : nanoseconds(0);

  const auto kind = input.below(4);
  const Schedule schedule = kind == 0   ? Schedule::fixed_rate(initial, gaps.front(), catch_up)
                            : kind == 1 ? Schedule::fixed_delay(initial, gaps.front())
                            : kind == 2 ? Schedule::sequence(gaps, catch_up)
                                        : Schedule::cycle(gaps, catch_up);
  Counted counted{start, kind < 2 ? std::vector{gaps.front()} : gaps, kind != 2};
  if (kind < 2) {
    counted.at = after(start, initial);
  } else {
    counted.step();
  }

  Occurrences occurrences(schedule.plan());
  occurrences.start(start);
  while (!input.ended()) {
    require(occurrences.at() == counted.at, "each occurrence is where counting comes to");
    if (counted.at == TimePoint::max()) return;
    // In parts of the shortest gap, so that there is not too much to count.
    const auto late = [&] {
      const nanoseconds part = std::min(shortest, nanoseconds::max() / 64) / (1 + input.up_to(3));
      return part * input.up_to(input.one_in(2) ? 63 : 3) + nanoseconds(input.up_to(2));
    };
    // No clock comes to the end of time.
    const TimePoint latest = TimePoint::max() - nanoseconds(1);
    const TimePoint started = std::min(after(counted.at, late()), latest);
    const TimePoint ended = std::min(after(started, late()), latest);
    if (kind == 1) {
      counted.at = after(ended, gaps.front());
      require(occurrences.next(started, ended), "a fixed delay never ends");
      continue;
    }
    const bool there = counted.next(catch_up, started, ended);
    require(occurrences.next(started, ended) == there, "it ends where counting ends");
    if (!there) return;
  }
}

}  // namespace hwt::fuzz
