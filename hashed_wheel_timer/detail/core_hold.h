// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "hashed_wheel_timer/detail/export.h"

namespace hwt {

class Timer;

namespace internal {
class Core;
class Sleeper;
}  // namespace internal

namespace detail {

/// Keeps the core of a timer for an object that belongs to the timer and may outlive it. Says whether this process may
/// use the object.
class HWT_API CoreHold {
 public:
  explicit CoreHold(const Timer& timer) noexcept;
  ~CoreHold();
  CoreHold(const CoreHold&) = delete;
  CoreHold& operator=(const CoreHold&) = delete;

  /// Returns whether the object was made before fork(), in the parent, and the timer is not one of this process. Then
  /// other threads of the parent may have been changing the object: its locks stay taken, its data half changed. So the
  /// object must wait for nothing and release nothing.
  bool in_forked_child() const noexcept;

  /// Returns the sleeper by which HeldCalls knows the timer.
  internal::Sleeper& sleeper() const noexcept;

 private:
  internal::Core& core_;
  const std::int64_t process_;
};

}  // namespace detail
}  // namespace hwt
