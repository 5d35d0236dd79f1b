#pragma once

#include <cstdint>

// Takes the place of the library's header: each test defines the time in nanoseconds.
#define steady_now true_steady_now
#include "../../../../../../hashed_wheel_timer/internal/time/clock.h"
#undef steady_now

namespace hwt::internal {

std::int64_t steady_now() noexcept;

}  // namespace hwt::internal
