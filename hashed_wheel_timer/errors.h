#pragma once

#include <stdexcept>

#include "hashed_wheel_timer/detail/export.h"

namespace hwt {

/// The call does not fit the state of the timer: new_timeout() or start() after stop(); stop(), advance() or run_due()
/// from inside a task; a thread_factory that returned no thread; task() of a null Timeout.
///
///   try {
///     timer.new_timeout(task, 1s);
///   } catch (const hwt::IllegalState&) {
///     return;   // the timer has been stopped: the program is going down
///   }
///
/// Guarantees: nothing has changed. try_new_timeout() returns a null handle instead.
/// Source: Java's IllegalStateException, which Netty throws there.
class HWT_API IllegalState : public std::logic_error {
 public:
  using std::logic_error::logic_error;
  /// In the library, and the class's type information with it, which all parts of a program then share.
  ~IllegalState() override;
};

/// Options::max_pending_timeouts are pending: the timer takes no more until one of them ends.
///
///   catch (const hwt::RejectedExecution&) { reject_request(id); }
///
/// Guarantees: nothing was scheduled; TimerStats::rejected counts it. try_new_timeout() returns a null handle instead.
/// Source: Java's RejectedExecutionException, which Netty throws there.
class HWT_API RejectedExecution : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  /// In the library, as that of IllegalState.
  ~RejectedExecution() override;
};

}  // namespace hwt
