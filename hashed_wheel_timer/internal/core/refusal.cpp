#include "hashed_wheel_timer/internal/core/refusal.h"

#include <new>
#include <string>

#include "hashed_wheel_timer/errors.h"

namespace hwt::internal {

void Refused::raise() const {
  switch (why) {
    case Refusal::Stopped:
      throw detail::TimerStopped("new_timeout: the timer has been stopped");
    case Refusal::Full:
      throw RejectedExecution("new_timeout: max_pending_timeouts: " + std::to_string(limit) +
                              " timeouts are pending already");
    default:
      throw std::bad_alloc();
  }
}

}  // namespace hwt::internal
