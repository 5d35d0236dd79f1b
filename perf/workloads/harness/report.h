#pragma once

#include <string>
#include <string_view>

#include "harness/figures.h"
#include "harness/options.h"

namespace perf {

/// Who runs the workload, and how to run it.
struct Runner {
  std::string name;
  std::string version;
  std::string timer{};    // what --timer calls it, in a program that has several
  bool one_loop = false;  // everything is done in the thread of one loop
  Figures (*measure)(const Options& options) = nullptr;
};

// Each is one line, as JSON or to read.
std::string description_line(const Runner& runner);
std::string round_line(const Runner& runner, const Options& options, int round, const Figures& figures);
std::string unsupported_line(const Runner& runner, const Options& options, std::string_view why);

}  // namespace perf
