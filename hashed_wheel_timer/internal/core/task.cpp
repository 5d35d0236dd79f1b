// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/detail/task.h"

namespace hwt::detail {

SharedTask::~SharedTask() = default;
void SharedTask::run(Timeout& timeout) { task_->run(timeout); }
void SharedTask::cancelled(Timeout& timeout) { task_->cancelled(timeout); }

}  // namespace hwt::detail
