// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>

namespace hwt {

/// A moment of the wall clock, in UTC.
using WallTime = std::chrono::sys_seconds;

namespace calendar {

/// Returns the first occurrence strictly after `after`, or nothing if there is none. A schedule calls it again after
/// the wall clock was set back, so it must not have side effects that matter. calendar.h has those of time zones. One
/// of your own needs nothing else:
///   hwt::Schedule::calendar([](hwt::WallTime after) { return after + 1h; })
using Rule = std::function<std::optional<WallTime>(WallTime after)>;

}  // namespace calendar
}  // namespace hwt
