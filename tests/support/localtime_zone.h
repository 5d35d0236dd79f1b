#pragma once

// Time zones by the C library, which is another implementation than that of calendar.h. Not on Windows.

#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "hashed_wheel_timer/calendar.h"

namespace hwt::test {

/// A zone as localtime tells it, from kBegin to kEnd: its offset from UTC from each change to the next.
class LocaltimeZone {
 public:
  static constexpr WallTime kBegin = std::chrono::sys_days(std::chrono::year{1970} / 1 / 1);
  static constexpr WallTime kEnd = std::chrono::sys_days(std::chrono::year{2038} / 1 / 1);

  explicit LocaltimeZone(const std::string& name) {
    setenv("TZ", name.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): no other thread
    tzset();
    constexpr std::chrono::hours kStep{12};
    changes_.push_back({kBegin, offset_at(kBegin)});
    for (WallTime time = kBegin; time < kEnd; time += kStep) {
      if (offset_at(time + kStep) != changes_.back().offset) add_change(time, time + kStep);
    }
    unsetenv("TZ");  // NOLINT(concurrency-mt-unsafe)
  }

  /// The moments at which a clock there shows this time, in order.
  std::vector<WallTime> moments_of(WallTime local) const {
    std::vector<WallTime> found;
    for (std::size_t i = first_near(local); i < changes_.size() && changes_[i].at <= local + days(2); ++i) {
      const WallTime time = local - changes_[i].offset;
      if (time >= changes_[i].at && (i + 1 == changes_.size() || time < changes_[i + 1].at)) found.push_back(time);
    }
    return found;
  }

  /// The moment by the offset before the gap that the local time falls into.
  WallTime after_gap(WallTime local) const {
    for (std::size_t i = first_near(local); i + 1 < changes_.size(); ++i) {
      const WallTime change = changes_[i + 1].at;
      if (local - changes_[i].offset >= change && local - changes_[i + 1].offset < change)
        return local - changes_[i].offset;
    }
    return local - changes_.back().offset;
  }

  /// The moments that a rule with this treatment of gaps and folds has for this time, in order.
  std::vector<WallTime> moments_of(WallTime local, calendar::Gap gap, calendar::Fold fold) const {
    std::vector<WallTime> moments = moments_of(local);
    if (moments.empty() && gap == calendar::Gap::ShiftForward) return {after_gap(local)};
    if (moments.size() > 1 && fold == calendar::Fold::First) moments.resize(1);
    if (moments.size() > 1 && fold == calendar::Fold::Second) moments.erase(moments.begin());
    return moments;
  }

  std::chrono::sys_days local_day(WallTime time) const {
    const auto next = std::upper_bound(changes_.begin(), changes_.end(), time,
                                       [](WallTime moment, const Change& change) { return moment < change.at; });
    return std::chrono::floor<days>(time + (next == changes_.begin() ? next : next - 1)->offset);
  }

 private:
  using days = std::chrono::days;
  using seconds = std::chrono::seconds;

  struct Change {
    WallTime at;
    seconds offset;
  };

  static seconds offset_at(WallTime time) {
    const time_t count = time.time_since_epoch().count();
    tm local{};
    localtime_r(&count, &local);
    return seconds(local.tm_gmtoff);
  }

  void add_change(WallTime before, WallTime after) {
    const seconds old = changes_.back().offset;
    while (after - before > seconds(1)) {
      const WallTime middle = before + (after - before) / 2;
      (offset_at(middle) == old ? before : after) = middle;
    }
    changes_.push_back({after, offset_at(after)});
  }

  /// The last change that is surely before all moments of this local time.
  std::size_t first_near(WallTime local) const {
    const auto next = std::upper_bound(changes_.begin(), changes_.end(), local - days(2),
                                       [](WallTime moment, const Change& change) { return moment < change.at; });
    return next == changes_.begin() ? 0 : static_cast<std::size_t>(next - changes_.begin() - 1);
  }

  std::vector<Change> changes_;
};

}  // namespace hwt::test
