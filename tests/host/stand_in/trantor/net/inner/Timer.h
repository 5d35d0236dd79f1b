#pragma once

#include <chrono>

namespace trantor {

using TimePoint = std::chrono::steady_clock::time_point;
using TimeInterval = std::chrono::microseconds;

}  // namespace trantor
