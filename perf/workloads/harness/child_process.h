#pragma once

#include <functional>

namespace perf {

/// Calls `work` in a copy of the process, whose memory nobody has used before, and returns what it returned.
/// Precondition: the process has one thread.
double in_child_process(const std::function<double()>& work);

}  // namespace perf
