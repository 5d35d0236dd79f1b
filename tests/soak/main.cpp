// A soak: all that users can do to timers, for as long as one likes, amid everything that can go wrong around them.
// Threads and timers that come and go, stalls of the process, memory that is refused, executors that drop and throw,
// tasks that throw. Each timeout is to end exactly once and never early, and memory is to stay as it is.

#include <malloc.h>
#include <sys/resource.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>

#include "tests/soak/supervisor.h"

namespace {

constexpr long kMostSeconds = 604'800;

std::optional<std::chrono::seconds> parse_seconds(const char* text) {
  long seconds = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), seconds);
  if (error != std::errc() || *end != '\0' || seconds < 1 || seconds > kMostSeconds) return std::nullopt;
  return std::chrono::seconds(seconds);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: soak SECONDS [SAMPLES.csv]\n");
    return 2;
  }
  const auto length = parse_seconds(argv[1]);
  if (!length) {
    std::fprintf(stderr, "soak: seconds: \"%s\" (expected: a whole number 1 .. %ld)\n", argv[1], kMostSeconds);
    return 2;
  }
  setpriority(PRIO_PROCESS, 0, 19);  // others come first
  // Unless a program sets its trim threshold, glibc raises it when a large block is freed. Then the heap of each thread
  // would keep its free end, which malloc_trim() leaves.
  mallopt(M_TRIM_THRESHOLD, 128 << 10);
  try {
    return hwt::soak::supervise(*length, argc == 3 ? argv[2] : "") ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "soak: %s\n", error.what());
    return 1;
  }
}
