#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace hwt::internal {

/// Throws the std::invalid_argument that names the option, its value and the valid range.
[[noreturn]] void refuse_option(const char* option, std::int64_t value, const std::string& expected);

/// Options::ticks_per_wheel, refused outside of [min, max], rounded up to a power of two.
std::int64_t checked_ticks_per_wheel(std::int64_t ticks, std::int64_t min, std::int64_t max);

/// A positive Options::tick_duration; a shorter one is raised, with a warning.
std::chrono::nanoseconds at_least_a_millisecond(std::chrono::nanoseconds tick_duration) noexcept;

}  // namespace hwt::internal
