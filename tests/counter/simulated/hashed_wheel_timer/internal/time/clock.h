#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

// Takes the place of the library's header: the test decides what time it is.
namespace hwt::internal {

std::int64_t steady_now() noexcept;

inline std::int64_t deadline_after(std::int64_t now, std::int64_t delay) noexcept { return now + delay; }

}  // namespace hwt::internal
