#pragma once

#include "hashed_wheel_timer/internal/core/core.h"

namespace hwt::test {

/// Makes the worker take all entries, as a producer does when tens of thousands of its timeouts stay alive.
inline void call_worker(internal::Core& core) { core.inbox().ask(internal::Inbox::kEverything, core.sleeper()); }

}  // namespace hwt::test
