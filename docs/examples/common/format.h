#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace common {

/// 1234567 -> "1,234,567".
std::string with_thousands(std::int64_t value);

/// "1 connection", "2,000 connections".
std::string counted(std::int64_t count, std::string_view noun);

/// The number with so many decimals.
std::string fixed(double value, int decimals);

/// "250 ms", "1.5 s", "85 µs": the unit that reads best, at most four significant digits, in UTF-8.
std::string short_duration(std::chrono::duration<double, std::nano> value);

/// A text from outside, fit for an error message: control characters replaced, long ones cut.
std::string one_line(std::string_view text, std::size_t max_length = 200);

}  // namespace common
