// The workloads on the timers of libuv.

#include "harness/measure.h"
#include "harness/run.h"
#include "libuv_timers.h"

int main(int argc, char** argv) {
  return perf::run(
      {.name = "libuv", .version = uv_version_string(), .one_loop = true, .measure = &perf::measure<perf::LibuvTimers>},
      argc, argv);
}
