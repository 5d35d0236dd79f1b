// What check.py runs: prints one JSON object.
//   guard describe   how it was built
//   guard count      runs the counted operations, and says how often each
//   guard ratios     measures the ratios

#include <cstdio>
#include <string_view>

#include "perf/guard/counted.h"
#include "perf/guard/ratios.h"

namespace {

#if defined(__clang__)
constexpr const char* kCompiler = "clang";
constexpr int kVersion = __clang_major__;
#else
constexpr const char* kCompiler = "gcc";
constexpr int kVersion = __GNUC__;
#endif

#if defined(__x86_64__)
constexpr const char* kArchitecture = "x86_64";
#elif defined(__aarch64__)
constexpr const char* kArchitecture = "aarch64";
#else
constexpr const char* kArchitecture = "other";
#endif

#if defined(__OPTIMIZE__) && defined(NDEBUG)
constexpr bool kRelease = true;
#else
constexpr bool kRelease = false;
#endif

void describe() {
  std::printf("{\"build\": \"%s-%d-%s\", \"release\": %s}\n", kCompiler, kVersion, kArchitecture,
              kRelease ? "true" : "false");
}

void print(const char* separator, const char* name, double value) {
  std::printf("%s\"%s\": %.17g", separator, name, value);
}

template <class Figures>
void print(const Figures& figures) {
  const char* separator = "{";
  for (const auto& [name, value] : figures) {
    print(separator, name.c_str(), static_cast<double>(value));
    separator = ", ";
  }
  std::puts("}");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  if (what == "describe") {
    describe();
  } else if (what == "count") {
    print(hwt::perf::run_counted());
  } else if (what == "ratios") {
    print(hwt::perf::measure_ratios());
  } else {
    std::fputs("usage: guard describe | count | ratios\n", stderr);
    return 2;
  }
}
