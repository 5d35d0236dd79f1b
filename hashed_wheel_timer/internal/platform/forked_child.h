#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "hashed_wheel_timer/internal/platform/threads.h"

namespace hwt::internal {

/// Remembers the process that made it. In a forked child other threads are gone in the midst of whatever they did:
/// their locks stay taken, and what they were changing stays half changed. So what has this member leaves all as it is
/// there.
class MadeInProcess {
 public:
  bool in_forked_child() const noexcept { return process_ != this_process(); }

 private:
  const std::int64_t process_ = this_process();
};

/// What was in `value` is never destroyed. For a member of what is destroyed in a forked child.
template <class T>
void abandon(T& value) noexcept {
  alignas(T) std::byte nowhere[sizeof(T)];
  ::new (static_cast<void*>(nowhere)) T(std::move(value));
}

}  // namespace hwt::internal
