// The parts of a timer one by one, and the floor of the machine (floor/). Most benchmarks show `each`, the CPU time of
// one operation. It includes all threads of the process if the worker's share belongs to the operation. Otherwise it
// includes only the calling threads.

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

int main(int argc, char** argv) {
  // Less than the default of 0.5 s: about a minute and a half in all. The command line overrides it.
  std::string min_time = "--benchmark_min_time=0.2";
  std::vector<char*> arguments(argv, argv + argc);
  arguments.insert(arguments.begin() + 1, min_time.data());
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
