#pragma once

#include <string>
#include <vector>

#include "perf/workloads/handoff.h"
#include "perf/workloads/late.h"
#include "perf/workloads/launches.h"
#include "perf/workloads/load.h"
#include "perf/workloads/options.h"
#include "perf/workloads/process.h"
#include "perf/workloads/rate.h"
#include "perf/workloads/rings.h"

namespace hwt::perf {

/// Runs one round of a workload on a Timer, a class of the form below. Calls are resolved at compile time, so that they
/// add no cost. The timer calls receiver.expired(id) on expiry.
///
///   static constexpr bool kOneLoop;                  // only the loop's thread may schedule and cancel
///   explicit Timer(std::chrono::microseconds tick);  // started
///   Slots make_slots(std::size_t size);              // a container of handles
///   void schedule(slot, receiver, id, delay);        // into a free slot
///   bool cancel(slot);                               // true: the task will never run
///   void put_off(slot, receiver, id, delay);         // to `delay` from now
///   void launch(receiver, id, delay);                // without a slot
///   void take_over();                                // waits until scheduled timeouts are in the wheel
///   void stop();                                     // joins its thread; further calls have no effect
///
/// With kOneLoop also these. They return after slice() has returned false:
///
///   void run_in_loop(slice);                         // alternates slice() and expiry until slice() is false
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
  if (options.workload == "rate") return measure_rate<Timer>(options);
  return measure_touch<Timer>(options);
}

/// The runner of a peer.
struct Runner {
  std::string name;
  std::string version;
  std::string timer{};    // its name for --timer, in a program with several
  bool one_loop = false;  // all runs on the thread of one loop
  std::string note{};     // a footnote of the figures
  Json (*measure)(const Options& options) = nullptr;
};

/// The main() of a runner. --timer chooses one of several timers; the first is the default. An exception ends the
/// program.
int run(const std::vector<Runner>& timers, int argc, char** argv);

}  // namespace hwt::perf
