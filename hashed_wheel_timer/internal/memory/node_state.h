// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hwt::internal {

/// The states of a timeout. Each transition is one compare-exchange of Node::word, so exactly one thread wins it. The
/// thread that wins the transition to Expired or Cancelled owns the task from then on.
///
///   from      to         by
///   Queued    InWheel    the worker, when it takes the node from the inbox
///   Queued    Cancelled  cancel(), new_timeout() that finds the timer stopped or has no memory for the entry
///   InWheel   Expired    the worker
///   InWheel   Cancelled  cancel(), the worker that empties a stopped timer
///
/// Some threads use the task after that exchange. Flags of the same word announce this to cancel_and_wait():
///
///   from        to          by
///   (none)      Busy        the worker that expires it; a cancel() that has a callable to destroy; in that exchange
///   (none)      HandedOver  the worker that expires it, where there is an executor; in that exchange
///   Busy        HandedOver  the worker, if it had to ask the task for its executor first
///   HandedOver  Busy        the job in the executor, the thread that drops it, cancel_or_disarm()
///                           the worker, if the executor throws
///   Busy        (none)      finish(): the task has run, and a callable is destroyed
enum class NodeState : std::uint32_t { Queued = 0, InWheel = 1, Expired = 2, Cancelled = 3 };

}  // namespace hwt::internal
