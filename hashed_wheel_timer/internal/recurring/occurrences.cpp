// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/recurring/occurrences.h"

#include <cstdint>

namespace hwt::internal {

using std::chrono::nanoseconds;
using time_point = Occurrences::time_point;

time_point saturating_sum(time_point a, nanoseconds b) {
  return b > nanoseconds::zero() && a > (time_point::max)() - b ? (time_point::max)() : a + b;
}

namespace {

// Unsigned, because the distance may exceed nanoseconds::max(): a clock may begin far below zero.
std::uint64_t distance(time_point from, time_point to) {
  const auto count = [](time_point time) { return static_cast<std::uint64_t>(time.time_since_epoch().count()); };
  return count(to) - count(from);
}

}  // namespace

Occurrences::Occurrences(const detail::SchedulePlan& plan)
    : initial_(plan.initial),
      gaps_(plan.gaps),
      next_gap_(plan.repeat ? plan.first_gap % plan.gaps.size() : plan.first_gap),
      repeat_(plan.repeat),
      from_end_(plan.from_end),
      catch_up_(plan.catch_up) {
  time_point end{};
  for (const nanoseconds gap : gaps_) end = saturating_sum(end, gap);
  cycle_ = end.time_since_epoch();
}

bool Occurrences::next(time_point started, time_point ended) {
  if (from_end_) {
    at_ = saturating_sum(ended, gaps_.front());
    return true;
  }
  switch (catch_up_) {
    case CatchUp::Burst:
      return step();
    case CatchUp::Once:
      if (!step_past(started)) return false;  // the run stands for all occurrences up to its start
      step_to_last(ended);
      return true;
    case CatchUp::Skip:
      break;
  }
  return step_past(ended);
}

/// Returns whether the awaited occurrence is not after `passed`. An occurrence at time_point::max() never passes.
bool Occurrences::has_passed(time_point passed) const { return at_ <= passed && at_ != (time_point::max)(); }

std::optional<time_point> Occurrences::following() const {
  if (next_gap_ == gaps_.size()) return {};
  return saturating_sum(at_, gaps_[next_gap_]);
}

bool Occurrences::step() {
  const std::optional<time_point> following_one = following();
  if (!following_one) return false;
  at_ = *following_one;
  ++next_gap_;
  if (repeat_ && next_gap_ == gaps_.size()) next_gap_ = 0;
  return true;
}

/// Skips the whole cycles between the awaited occurrence and `passed`. After a long stall, a loop over short gaps would
/// take too long. Without repetition there are no cycles, and a cycle that does not fit into nanoseconds cannot pass.
void Occurrences::skip_cycles(time_point passed) {
  if (!repeat_ || at_ >= passed || cycle_ == (nanoseconds::max)()) return;
  const auto past_the_last = distance(at_, passed) % static_cast<std::uint64_t>(cycle_.count());
  at_ = passed - nanoseconds(static_cast<std::int64_t>(past_the_last));
}

/// Advances to the first occurrence after `passed`, by at least one. Returns false if there is none.
bool Occurrences::step_past(time_point passed) {
  if (!step()) return false;
  skip_cycles(passed);
  while (has_passed(passed)) {
    if (!step()) return false;
  }
  return true;
}

/// Advances to the last occurrence that is not after `passed`. Stays at an occurrence that is after it.
void Occurrences::step_to_last(time_point passed) {
  skip_cycles(passed);
  while (has_passed(passed)) {
    const std::optional<time_point> following_one = following();
    if (!following_one || *following_one > passed) return;
    step();
  }
}

}  // namespace hwt::internal
