#pragma once

#include "harness/report.h"

namespace perf {

/// The main() of a runner.
int run(const Runner& runner, int argc, char** argv);

}  // namespace perf
