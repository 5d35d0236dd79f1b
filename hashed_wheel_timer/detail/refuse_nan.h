#pragma once

#include <chrono>

#include "hashed_wheel_timer/delay.h"
#include "hashed_wheel_timer/detail/export.h"

namespace hwt::detail {

/// Throws std::invalid_argument "`parameter`: NaN (expected: a number)". In the library, because there are users who
/// compile without exceptions.
[[noreturn]] HWT_API void refuse_nan(const char* parameter);

inline std::chrono::nanoseconds number(const char* parameter, Delay delay) {
  if (delay.is_nan()) [[unlikely]]
    refuse_nan(parameter);
  return delay;
}

}  // namespace hwt::detail
