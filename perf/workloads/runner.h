#pragma once

#include <string>
#include <vector>

#include "perf/workloads/handoff.h"
#include "perf/workloads/late.h"
#include "perf/workloads/launches.h"
#include "perf/workloads/load.h"
#include "perf/workloads/options.h"
#include "perf/workloads/process.h"
#include "perf/workloads/rings.h"

namespace hwt::perf {

/// One round of any workload on a Timer. That is a class of the form below; all is resolved when it is compiled, so
/// that nothing is added to what the timer itself costs. A receiver is told of an expiry by receiver.expired(id).
///
///   explicit Timer(std::chrono::microseconds tick);  // started
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
Json measure(const Options& options) {
  if (options.workload == "churn") return measure_churn<Timer>(options);
  if constexpr (!Timer::kOneLoop) {
    if (options.workload == "handoff") return measure_handoff<Timer>(options);
    if (options.workload == "load") return measure_load<Timer>(options);
  }
  if (options.workload == "expire") return measure_expire<Timer>(options);
  if (options.workload == "memory") return measure_memory<Timer>(options);
  if (options.workload == "idle") return measure_idle<Timer>(options);
  if (options.workload == "far") return measure_far<Timer>(options);
  if (options.workload == "late") return measure_late<Timer>(options);
  return measure_touch<Timer>(options);
}

/// Who runs the workloads, and how.
struct Runner {
  std::string name;
  std::string version;
  std::string timer{};    // what --timer calls it, in a program that has several
  bool one_loop = false;  // everything is done in the thread of one loop
  std::string note{};     // what a reader of the figures has to know
  Json (*measure)(const Options& options) = nullptr;
};

/// The main() of a runner. Of several timers --timer chooses one; the first by default. What is thrown while measuring
/// ends the program.
int run(const std::vector<Runner>& timers, int argc, char** argv);

}  // namespace hwt::perf
