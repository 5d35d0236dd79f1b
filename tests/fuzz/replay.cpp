// Runs inputs without libFuzzer, with any compiler.
//   replay TARGET FILE...: stored ones. A file is one input. But a file NAME.hex has many, one in a line, in
//   hexadecimal. replay TARGET --random FIRST LAST: long ones of random bytes, with the seeds from FIRST to LAST.

#include <charconv>
#include <csignal>
#include <fstream>
#include <iterator>

#include "tests/fuzz/targets.h"

namespace {

struct Target {
  const char* name;
  void (*run)(hwt::fuzz::Input&);
};

const Target kTargets[] = {
    {"wheels", hwt::fuzz::wheels},       {"passive_wheel", hwt::fuzz::passive_wheel},
    {"timers", hwt::fuzz::timers},       {"schedules", hwt::fuzz::schedules},
    {"options", hwt::fuzz::options},     {"deadlines", hwt::fuzz::deadlines},
#ifdef HWT_FUZZ_CALENDARS
    {"calendars", hwt::fuzz::calendars},
#endif
#ifdef HWT_FUZZ_DURATIONS
    {"durations", hwt::fuzz::durations},
#endif
};

using Bytes = std::vector<std::uint8_t>;

/// Returns no byte for a line that is no hexadecimal number with an even number of digits.
Bytes bytes_of(const std::string& line) {
  Bytes bytes(line.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char* const digits = &line[2 * i];
    if (std::from_chars(digits, digits + 2, bytes[i], 16).ptr != digits + 2) return {};
  }
  return line.size() % 2 == 0 ? bytes : Bytes{};
}

/// Returns the inputs of a file. Returns none, after a line on stderr, if it cannot be read.
std::vector<Bytes> inputs_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<Bytes> inputs;
  if (path.ends_with(".hex")) {
    for (std::string line; std::getline(file, line);) {
      inputs.push_back(bytes_of(line));
      if (!inputs.back().empty()) continue;
      std::fprintf(stderr, "%s:%zu: not hexadecimal: %s\n", path.c_str(), inputs.size(), line.c_str());
      return {};
    }
  } else if (file) {
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  if (inputs.empty()) std::fprintf(stderr, "%s: no input, or it cannot be read\n", path.c_str());
  return inputs;
}

unsigned long long seed = 0;

/// Prints the seed that fails.
void tell_seed(int signal) {
  std::fprintf(stderr, "seed %llu fails\n", seed);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

int run_random(const Target& target, std::uint64_t first, std::uint64_t last) {
  for (const int signal : {SIGABRT, SIGSEGV, SIGTERM, SIGINT}) std::signal(signal, tell_seed);
  for (seed = first; seed <= last; ++seed) {
    const Bytes bytes = hwt::fuzz::random_bytes(seed);
    hwt::fuzz::Input input(bytes.data(), bytes.size(), true);
    target.run(input);
  }
  std::printf("%llu seeds\n", seed - first);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Target* const target = std::find_if(std::begin(kTargets), std::end(kTargets), [&](const Target& each) {
    return argc > 2 && std::strcmp(each.name, argv[1]) == 0;
  });
  if (target == std::end(kTargets)) {
    std::fprintf(stderr, "usage: replay TARGET FILE...\n       replay TARGET --random FIRST LAST\ntargets:");
    for (const Target& each : kTargets) std::fprintf(stderr, " %s", each.name);
    std::fprintf(stderr, "\n");
    return 2;
  }
  if (argc == 5 && std::strcmp(argv[2], "--random") == 0)
    return run_random(*target, std::strtoull(argv[3], nullptr, 10), std::strtoull(argv[4], nullptr, 10));
  std::size_t replayed = 0;
  for (int i = 2; i < argc; ++i) {
    const std::vector<Bytes> inputs = inputs_of(argv[i]);
    if (inputs.empty()) return 1;
    for (std::size_t line = 0; line < inputs.size(); ++line, ++replayed) {
      std::fprintf(stderr, "%s:%zu\n", argv[i], line + 1);  // the last one is the one that fails
      hwt::fuzz::Input input(inputs[line].data(), inputs[line].size());
      target->run(input);
    }
  }
  std::printf("%zu inputs replayed\n", replayed);
  return replayed == 0 ? 1 : 0;
}
