// The workloads on this library's timer.

#include "harness/measure.h"
#include "harness/run.h"
#include "hashed_wheel.h"

int main(int argc, char** argv) {
  return perf::run({.name = "hashed_wheel_timer", .version = HWT_VERSION, .measure = &perf::measure<perf::HashedWheel>},
                   argc, argv);
}
