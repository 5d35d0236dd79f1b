// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hwt::internal {
struct Node;
}

namespace hwt::detail {

/// The outcome of a call that schedules a timeout, or of a wait for one.
enum class Result : std::uint8_t {
  Ok,
  NotStarted,  // the timer has no worker yet; Timer::begin() starts it
  Stopped,     // the timer has been stopped; also the end of a wait that was cancelled or whose task was dropped
  Untraced,    // the timer traces origins, and schedule_traced() schedules
  Full,        // max_pending_timeouts
  NoMemory,
  NoThread,  // the timer found no thread for its worker
  NullTask,
  NotANumber,  // the delay
  LeewayNotANumber,
};

/// The result of Timer::schedule(), in two registers: the node of the new timeout, or why there is none. The caller has
/// a reference to the node, unless it asked for an id: then the node may have been freed already.
struct Scheduled {
  internal::Node* node = nullptr;
  // The id of the timeout. Without a node, the lowest byte is the result, and for Full the rest is the limit.
  std::uint64_t value = 0;

  static Scheduled refused(Result why, std::int64_t limit = 0) noexcept {
    return {nullptr, static_cast<std::uint64_t>(limit) << 8 | static_cast<std::uint64_t>(why)};
  }
  Result result() const noexcept { return node != nullptr ? Result::Ok : static_cast<Result>(value & 0xFF); }
  /// Returns max_pending_timeouts. Precondition: result() is Full.
  std::int64_t limit() const noexcept { return static_cast<std::int64_t>(value >> 8); }
};

}  // namespace hwt::detail
