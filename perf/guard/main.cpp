// The program of check.py. Prints one JSON object.
//   guard describe   how it was built
//   guard count      runs the counted operations and prints how often
//   guard ratios     measures the ratios

#include <iostream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "perf/guard/measured.h"

namespace {

#if defined(__OPTIMIZE__) && defined(NDEBUG)
constexpr bool kRelease = true;
#else
constexpr bool kRelease = false;
#endif

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  nlohmann::json answer;
  if (what == "describe") {
    answer = {{"build", HWT_BUILD}, {"release", kRelease}};
  } else if (what == "count") {
    answer = hwt::perf::run_counted();
  } else if (what == "ratios") {
    answer = hwt::perf::measure_ratios();
  } else {
    std::cerr << "usage: guard describe | count | ratios\n";
    return 2;
  }
  std::cout << answer << '\n';
}
