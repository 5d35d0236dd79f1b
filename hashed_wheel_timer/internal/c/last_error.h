// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hashed_wheel_timer/detail/scheduled.h"

// The errors of the C interface: errno, and for each thread the text of hwt_last_error(). `caller` is the name of the
// function that failed. It must be a literal, because its address is kept.

namespace hwt::internal {

/// Sets errno, and the text to `caller`: `text`. Returns errno.
int fail(int error, const char* caller, const char* text) noexcept;

/// Fails for the exception that is being handled. `illegal` is the errno for an IllegalState. Returns errno.
int fail_by_exception(const char* caller, int illegal) noexcept;

/// Fails for a timeout that was refused. last_error() makes the text, because a server at max_pending refuses many and
/// reads few.
void fail_by_refusal(detail::Scheduled refused, const char* caller) noexcept;

/// See hwt_last_error().
const char* last_error() noexcept;

}  // namespace hwt::internal
