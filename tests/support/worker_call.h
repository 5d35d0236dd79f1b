#pragma once

#include "hashed_wheel_timer/internal/core/core.h"

namespace hwt::test {

/// Makes the worker take all entries, as a producer does when tens of thousands of its timeouts stay alive.
inline void call_worker(internal::Core& core) { core.inbox().ask(internal::Inbox::kEverything, core.sleeper()); }

/// Returns the number of producers. There are as many as the most threads that have used the timer at once.
inline int producers_of(internal::Core& core) {
  int producers = 0;
  core.producers().for_each([&](auto&) { ++producers; });
  return producers;
}

}  // namespace hwt::test
