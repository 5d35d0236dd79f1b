// An oracle: random calls of all timers, by several threads that are stopped at any instruction, without memory, with
// executors that fail. It notes the life of each timeout, and checks the promises of README.md exactly.

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>

#include "tests/oracle/round.h"

namespace {

struct Arguments {
  std::uint64_t operations = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t seed = 1;
  std::uint64_t seconds = 60;
};

bool parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; i += 2) {
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
    std::fprintf(stderr, "usage: oracle [--operations N] [--seed SEED] [--seconds MOST]: whole numbers\n");
    return 2;
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [begin] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  hwt::soak::Totals totals;
  std::uint64_t rounds = 0;
  do {
    hwt::oracle::run_round(arguments.seed + rounds, totals);
    ++rounds;
  } while (static_cast<std::uint64_t>(totals.operations()) < arguments.operations &&
           passed() < static_cast<double>(arguments.seconds));
  std::printf(
      "seeds %llu to %llu, %lld operations (%lld scheduled, %lld cancelled, %lld expired) in %.1f s: all "
      "promises were kept\n",
      static_cast<unsigned long long>(arguments.seed), static_cast<unsigned long long>(arguments.seed + rounds - 1),
      static_cast<long long>(totals.operations()), static_cast<long long>(totals.scheduled),
      static_cast<long long>(totals.cancelled), static_cast<long long>(totals.expired), passed());
  return 0;
}
