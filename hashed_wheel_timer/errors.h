#pragma once

#include <stdexcept>

#include "hashed_wheel_timer/export.h"

namespace hwt {

/// The call does not fit the state of the timer: new_timeout() or start() after stop(), stop() from inside a task.
/// Netty: IllegalStateException.
class HWT_API IllegalState : public std::logic_error {
 public:
  using std::logic_error::logic_error;
  ~IllegalState() override;
};

/// Options::max_pending_timeouts has been reached; nothing was scheduled. Netty: RejectedExecutionException.
class HWT_API RejectedExecution : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~RejectedExecution() override;
};

}  // namespace hwt
