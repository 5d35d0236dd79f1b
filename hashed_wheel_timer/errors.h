// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

#include "hashed_wheel_timer/detail/export.h"

namespace hwt {

/// A call does not fit the state of the timer. Examples are new_timeout() and start() after stop(), and stop(),
/// advance() and run_due() inside a task. Others are a thread_factory that returned no thread, and task() of a null
/// Timeout.
///
///   try {
///     timer.new_timeout(task, 1s);
///   } catch (const hwt::IllegalState&) {
///     return;   // the timer has been stopped: the program is going down
///   }
///
/// Guarantees: the timer is as before. But a callable that was passed with std::move may be gone. try_new_timeout()
/// returns a null handle instead of throwing this.
/// Source: Java's IllegalStateException, which Netty throws there.
class HWT_API IllegalState : public std::logic_error {
 public:
  using std::logic_error::logic_error;
  /// Defined in the library, so that all parts of a program share the type information of the class.
  ~IllegalState() override;
};

/// A refusal because Options::max_pending_timeouts are pending.
///
///   catch (const hwt::RejectedExecution&) { reject_request(id); }
///
/// Guarantees: nothing was scheduled; TimerStats::rejected counts it. try_new_timeout() returns a null handle instead
/// of throwing this.
/// Source: Java's RejectedExecutionException, which Netty throws there.
class HWT_API RejectedExecution : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  /// Defined in the library, so that all parts of a program share the type information of the class.
  ~RejectedExecution() override;
};

}  // namespace hwt
