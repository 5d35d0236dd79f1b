#pragma once

#include <vector>

#include "harness/report.h"

namespace perf {

/// The main() of a runner.
int run(const Runner& runner, int argc, char** argv);

/// The same for several timers, of which --timer chooses one; the first by default.
int run(const std::vector<Runner>& timers, int argc, char** argv);

}  // namespace perf
