// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "hashed_wheel_timer/detail/export.h"

namespace hwt {

class Timer;

namespace internal {
class Sleeper;
}

namespace detail {

/// The timer that an object uses, which the object may outlive. Says whether this process may use the object.
class HWT_API UsedTimer {
 public:
  explicit UsedTimer(const Timer& timer) noexcept;
  ~UsedTimer();
  UsedTimer(const UsedTimer&) = delete;
  UsedTimer& operator=(const UsedTimer&) = delete;

  /// Returns whether the object was made before fork(), in the parent, and this process has neither started nor adopted
  /// the timer. Then the object must wait for nothing and release nothing: see internal::is_lost_to_child().
  bool in_forked_child() const noexcept;

  /// Returns whether another process has started the timer, and this one has not adopted it.
  bool is_of_another_process() const noexcept;

  /// Returns the sleeper by which HeldCalls knows the timer. The timer may be gone.
  internal::Sleeper& sleeper() const noexcept { return sleeper_; }

 private:
  internal::Sleeper& sleeper_;
  const std::shared_ptr<const std::atomic<std::int64_t>> process_of_timer_;  // see Lifecycle
  const std::int64_t made_in_;                                               // the process that made the object
};

}  // namespace detail
}  // namespace hwt
