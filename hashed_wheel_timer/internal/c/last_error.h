#pragma once

#include "hashed_wheel_timer/detail/scheduled.h"

// The errors of the C interface: errno, and a line for each thread. `caller` is the name of the function that failed, a
// literal.

namespace hwt::internal {

/// Sets errno and the line. Returns errno.
int fail(int error, const char* caller, const char* text) noexcept;

/// Fails for the exception that is being handled. An IllegalState gives `illegal`. Returns errno.
int fail_by_exception(const char* caller, int illegal) noexcept;

/// Fails for a timeout that was refused. Makes no text yet, because a server at max_pending refuses many.
void fail_by_refusal(detail::Scheduled refused, const char* caller) noexcept;

/// See hwt_last_error().
const char* last_error() noexcept;

}  // namespace hwt::internal
