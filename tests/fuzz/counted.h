#pragma once

#include "hashed_wheel_timer/schedule.h"
#include "tests/fuzz/input.h"

namespace hwt::fuzz {

/// The occurrences of a schedule, found by counting them one by one.
struct Counted {
  TimePoint at;
  std::vector<std::chrono::nanoseconds> gaps;  // to the occurrences that follow
  bool repeat;
  std::size_t next_gap = 0;

  /// To the one that follows a run. False: there is none.
  bool next(CatchUp catch_up, TimePoint started, TimePoint ended) {
    switch (catch_up) {
      case CatchUp::Skip:
        return step_past(ended);
      case CatchUp::Burst:
        return step();
      case CatchUp::Once:
        if (!step_past(started)) return false;
        while (at <= ended && has_next_by(ended)) step();
        return true;
    }
    return false;
  }

  bool step() {
    if (next_gap == gaps.size()) {
      if (!repeat) return false;
      next_gap = 0;
    }
    at = after(at, gaps[next_gap++]);
    return true;
  }

 private:
  /// To the first one after `passed`, or to the end of time, at least one further.
  bool step_past(TimePoint passed) {
    do {
      if (!step()) return false;
    } while (at <= passed && at != TimePoint::max());
    return true;
  }
  bool has_next_by(TimePoint time) const {
    Counted next = *this;
    return next.step() && next.at <= time && next.at != TimePoint::max();
  }
};

}  // namespace hwt::fuzz
