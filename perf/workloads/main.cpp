// The workloads on this library's timers.

#include "harness/measure.h"
#include "harness/run.h"
#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/hierarchical_wheel_timer.h"
#include "wheel_timer.h"

int main(int argc, char** argv) {
  return perf::run({{.name = "hashed_wheel_timer",
                     .version = HWT_VERSION,
                     .timer = "hashed",
                     .measure = &perf::measure<perf::WheelTimer<hwt::HashedWheelTimer>>},
                    {.name = "hierarchical_wheel_timer",
                     .version = HWT_VERSION,
                     .timer = "hierarchical",
                     .measure = &perf::measure<perf::WheelTimer<hwt::HierarchicalWheelTimer>>}},
                   argc, argv);
}
