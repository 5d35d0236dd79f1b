// The parts of a timer one by one, and what the machine needs at least (floor/). Each benchmark shows `each`: the time
// of one operation. It is CPU time: of the whole process where the worker's share belongs to the operation, so that no
// work hides on another core, and of the calling threads alone where it does not.

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

int main(int argc, char** argv) {
  // Half of the usual time for each: about a minute and a half in all. What the command line says comes later, and
  // wins.
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
