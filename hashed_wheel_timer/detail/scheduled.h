#pragma once

#include <cstdint>

namespace hwt::internal {
struct Node;
}

namespace hwt::detail {

/// What became of a call that schedules a timeout, or of a wait for one.
enum class Result : std::uint8_t {
  Ok,
  NotStarted,  // the timer has no worker yet: Timer::begin() starts it
  Stopped,     // the timer has been stopped; also the end of a wait that was cancelled
  Full,        // max_pending_timeouts
  NoMemory,
  NoThread,  // the timer found no thread for its worker
  NullTask,
  NotANumber,
};

/// What Timer::schedule() returns, in two registers: the node of the new timeout, with a reference for the caller, or
/// why there is none.
struct Scheduled {
  internal::Node* node = nullptr;
  std::uint64_t refusal = 0;  // the result in the lowest byte, the limit of a Full above it

  static Scheduled refused(Result why, std::int64_t limit = 0) noexcept {
    return {nullptr, static_cast<std::uint64_t>(limit) << 8 | static_cast<std::uint64_t>(why)};
  }
  Result result() const noexcept { return static_cast<Result>(refusal & 0xFF); }
  std::int64_t limit() const noexcept { return static_cast<std::int64_t>(refusal >> 8); }
};

}  // namespace hwt::detail
