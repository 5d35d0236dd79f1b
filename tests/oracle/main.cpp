// An oracle: random calls of all timers, by several threads that are stopped at any instruction, without memory, with
// executors that fail. It notes the life of each timeout, and checks the promises of README.md exactly.

#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <limits>

#include "tests/oracle/round.h"
#include "tests/oracle/supervisor.h"

namespace {

struct Arguments {
  std::uint64_t operations = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t seed = 1, seconds = 60;
  const char* samples = nullptr;
};

bool parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; i += 2) {
    if (std::strcmp(argv[i], "--samples") == 0 && i + 1 != argc) {
      arguments.samples = argv[i + 1];
      continue;
    }
    std::uint64_t* const number = std::strcmp(argv[i], "--operations") == 0 ? &arguments.operations
                                  : std::strcmp(argv[i], "--seed") == 0     ? &arguments.seed
                                  : std::strcmp(argv[i], "--seconds") == 0  ? &arguments.seconds
                                                                            : nullptr;
    if (number == nullptr || i + 1 == argc) return false;
    const char* const end_of_text = argv[i + 1] + std::strlen(argv[i + 1]);
    const auto [end, error] = std::from_chars(argv[i + 1], end_of_text, *number);
    if (error != std::errc() || end != end_of_text) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, arguments)) {
    std::fprintf(
        stderr,
        "usage: oracle [--operations N] [--seed SEED] [--seconds MOST] [--samples FILE]\n"
        "whole numbers; with a file: in a process that is stopped and continued, and whose memory is watched\n");
    return 2;
  }
  if (arguments.samples != nullptr) {
    try {
      return hwt::oracle::supervise(arguments.seed, std::chrono::seconds(arguments.seconds), arguments.samples) ? 0 : 1;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "oracle: %s\n", error.what());
      return 1;
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [begin] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  hwt::oracle::Totals totals;
  std::uint64_t rounds = 0;
  do {
    hwt::oracle::run_round(arguments.seed + rounds, false, totals);
    ++rounds;
  } while (static_cast<std::uint64_t>(totals.calls) < arguments.operations &&
           passed() < static_cast<double>(arguments.seconds));
  std::printf(
      "seeds %llu to %llu, %lld operations with a record (in all %lld scheduled, %lld cancelled, %lld expired) in "
      "%.1f s: all promises were kept\n",
      static_cast<unsigned long long>(arguments.seed), static_cast<unsigned long long>(arguments.seed + rounds - 1),
      static_cast<long long>(totals.calls), static_cast<long long>(totals.scheduled),
      static_cast<long long>(totals.cancelled), static_cast<long long>(totals.expired), passed());
  return 0;
}
