// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "hashed_wheel_timer/internal/platform/threads.h"

namespace hwt::internal {

/// Remembers the process that made it. In a forked child the other threads no longer exist: their locks stay taken, and
/// data that they were changing stays half changed. A class with this member releases nothing in such a child.
class MadeInProcess {
 public:
  bool in_forked_child() const noexcept { return process_ != this_process(); }

 private:
  const std::int64_t process_ = this_process();
};

/// Leaks the contents of `value`, so that a destructor that runs in a forked child does not touch them.
template <class T>
void abandon(T& value) noexcept {
  alignas(T) std::byte nowhere[sizeof(T)];
  ::new (static_cast<void*>(nowhere)) T(std::move(value));
}

}  // namespace hwt::internal
