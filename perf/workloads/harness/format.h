#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace perf {

/// 1234567 -> "1,234,567".
std::string with_thousands(std::uint64_t value);

/// The number with so many decimals and a point, whatever the locale.
std::string fixed(double value, int decimals);

/// A text from outside, fit for an error message: control characters replaced, long ones cut.
std::string one_line(std::string_view text, std::size_t max_length = 200);

/// The whole text as decimal digits.
std::optional<std::uint64_t> parse_whole_number(std::string_view text);

}  // namespace perf
