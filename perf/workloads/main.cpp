// The workloads on this library's timers.

#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/hierarchical_wheel_timer.h"
#include "hashed_wheel_timer/version.h"
#include "perf/workloads/runner.h"
#include "perf/workloads/wheel_timer.h"

int main(int argc, char** argv) {
  using namespace hwt;
  return perf::run({{.name = "hashed_wheel_timer",
                     .version = HWT_VERSION_STRING,
                     .timer = "hashed",
                     .measure = &perf::measure<perf::WheelTimer<HashedWheelTimer>>},
                    {.name = "hierarchical_wheel_timer",
                     .version = HWT_VERSION_STRING,
                     .timer = "hierarchical",
                     .measure = &perf::measure<perf::WheelTimer<HierarchicalWheelTimer>>}},
                   argc, argv);
}
