// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "hashed_wheel_timer/delay.h"
#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/when.h"

namespace hwt::detail {

/// Throws std::invalid_argument "`parameter`: NaN (expected: a number)". Defined in the library, because a program that
/// includes this header may be compiled without exceptions.
[[noreturn]] HWT_API void refuse_nan(const char* parameter);

/// Both return their argument. They call refuse_nan() for a NaN.
inline std::chrono::nanoseconds number(const char* parameter, Delay delay) {
  if (delay.is_nan()) [[unlikely]]
    refuse_nan(parameter);
  return delay;
}
inline When number(const char* parameter, When when) {
  if (when.is_nan()) [[unlikely]]
    refuse_nan(parameter);
  return when;
}

/// Throws the std::invalid_argument for a text from outside, which the message shows in quotes and as one line.
[[noreturn]] HWT_API void refuse_text(const char* what, const char* text, const char* expected);

}  // namespace hwt::detail
