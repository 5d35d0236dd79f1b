// Runs stored inputs without libFuzzer, with any compiler: replay TARGET FILE-OR-FOLDER...

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/targets.h"

namespace {

namespace fs = std::filesystem;

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

/// In the order of their names, so that a failure is the same one each time.
std::vector<fs::path> files_of(const char* argument) {
  if (!fs::is_directory(argument)) return {argument};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(argument)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

bool replay(const Target& target, const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path.string().c_str());
    return false;
  }
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::fprintf(stderr, "%s\n", path.string().c_str());  // the last one is the one that fails
  hwt::fuzz::Input input(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  target.run(input);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const Target* const target = std::find_if(std::begin(kTargets), std::end(kTargets), [&](const Target& each) {
    return argc > 2 && std::strcmp(each.name, argv[1]) == 0;
  });
  if (target == std::end(kTargets)) {
    std::fprintf(stderr, "usage: replay TARGET FILE-OR-FOLDER...\ntargets:");
    for (const Target& each : kTargets) std::fprintf(stderr, " %s", each.name);
    std::fprintf(stderr, "\n");
    return 2;
  }
  std::size_t inputs = 0;
  for (int i = 2; i < argc; ++i) {
    for (const fs::path& path : files_of(argv[i])) {
      if (!replay(*target, path)) return 1;
      ++inputs;
    }
  }
  std::printf("%zu inputs replayed\n", inputs);
  return inputs == 0 ? 1 : 0;
}
