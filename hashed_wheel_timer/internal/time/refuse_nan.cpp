// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/detail/refuse_nan.h"

#include <string>

#include "hashed_wheel_timer/internal/report/refuse.h"

namespace hwt::detail {

void refuse_nan(const char* parameter) { internal::refuse(parameter, "NaN", "a number"); }

void refuse_text(const char* what, const char* text, const char* expected) {
  internal::refuse(what, std::string("\"") + text + '"', expected);
}

}  // namespace hwt::detail
