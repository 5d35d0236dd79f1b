#include "hashed_wheel_timer/detail/refuse_nan.h"

#include "hashed_wheel_timer/internal/report/refuse.h"

namespace hwt::detail {

void refuse_nan(const char* parameter) { internal::refuse(parameter, "NaN", "a number"); }

}  // namespace hwt::detail
