// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/errors.h"

namespace hwt {

IllegalState::~IllegalState() = default;
RejectedExecution::~RejectedExecution() = default;

}  // namespace hwt
