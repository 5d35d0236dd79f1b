#pragma once

#include <cstdint>

// Takes the place of the library's header, and adds to it: a test can set the clock of its thread back.
#define steady_now true_steady_now
#include "../../../../../../hashed_wheel_timer/internal/time/clock.h"
#undef steady_now

namespace hwt::internal {

inline thread_local std::int64_t set_back_by = 0;  // ns

inline std::int64_t steady_now() noexcept { return true_steady_now() - set_back_by; }

}  // namespace hwt::internal
