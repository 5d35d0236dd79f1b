#include "hashed_wheel_timer/internal/platform/live_instance.h"

#include "hashed_wheel_timer/internal/platform/diagnostics.h"

namespace hwt::internal {

namespace {

constexpr int kMaxInstances = 64;

// Counters only: nothing else is published through them.
std::atomic<int> live_instances{0};
std::atomic<bool> warned_of_instances{false};

}  // namespace

LiveInstance::LiveInstance() noexcept {
  if (live_instances.fetch_add(1, std::memory_order_relaxed) >= kMaxInstances &&
      !warned_of_instances.exchange(true, std::memory_order_relaxed)) {
    warn(
        "more than 64 timers are alive at once. A timer has a thread of its own and is made to be shared: "
        "use a few per process.");
  }
}

void LiveInstance::release() noexcept {
  if (counted_.exchange(false, std::memory_order_relaxed)) live_instances.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace hwt::internal
