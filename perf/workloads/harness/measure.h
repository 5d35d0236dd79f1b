#pragma once

#include <stdexcept>

#include "harness/churn.h"
#include "harness/expire.h"
#include "harness/figures.h"
#include "harness/late.h"
#include "harness/memory.h"
#include "harness/options.h"
#include "harness/rest.h"
#include "harness/touch.h"

namespace perf {

/// Runs one round of any workload on a Timer. That is a class of the form below; all is resolved when it is compiled,
/// so that nothing is added to what the timer itself costs. A receiver is told of an expiry by receiver.expired(id).
///
///   explicit Timer(std::chrono::milliseconds tick);  // started
///   using Slots;                                     // a container of what a user keeps of a timeout to cancel it
///   Slots make_slots(std::size_t size);
///   void schedule(slot, receiver, id, delay);        // into a slot that is not in use
///   bool cancel(slot);                               // true: it has not run and never will
///   void put_off(slot, receiver, id, delay);         // to `delay` from now
///   void launch(receiver, id, delay);                // without a slot
///   void take_over();                                // waits until what was scheduled is where it will expire from
///   void stop();                                     // for good, and joins its thread; once more: nothing
///   static constexpr bool kOneLoop;                  // schedule() to launch() may be called in its own loop only
///
/// With kOneLoop also these, which return at the end:
///   void run_in_loop(slice);                         // slice() and a look at what is due, in turn, until it is false
///   void run_in_loop_every(interval, slice);
template <class Timer>
Figures measure(const Options& options) {
  switch (options.workload) {
    case Workload::Churn:
      return measure_churn<Timer>(options);
    case Workload::Expire:
      return measure_expire<Timer>(options);
    case Workload::Memory:
      return measure_memory<Timer>(options);
    case Workload::Idle:
    case Workload::Far:
      return measure_rest<Timer>(options);
    case Workload::Late:
      return measure_late<Timer>(options);
    case Workload::Touch:
      return measure_touch<Timer>(options);
  }
  throw std::logic_error("no such workload");
}

}  // namespace perf
