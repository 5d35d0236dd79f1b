#pragma once

// Formats and parses numbers.

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace common {

/// 1234567 -> "1,234,567".
std::string with_thousands(std::int64_t value);

/// "250 ms", "1.5 s", "85 µs": the unit that reads best and at most four significant digits, in UTF-8. From 10,000 s on
/// all digits of the seconds. `value` must not be negative.
std::string short_duration(std::chrono::duration<double, std::nano> value);

/// "12.3 s": elapsed time.
std::string in_seconds(std::chrono::duration<double> value);

/// The standard form of each kind of value.
std::string text_of(std::integral auto value) { return with_thousands(static_cast<std::int64_t>(value)); }
template <class Rep, class Period>
std::string text_of(std::chrono::duration<Rep, Period> value) {
  return short_duration(value);
}
inline std::string text_of(std::string text) { return text; }

/// "1 connection", "2,000 connections".
std::string counted(std::integral auto count, std::string_view noun) {
  return text_of(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

/// Formats like printf(), and cuts the text after 499 bytes.
[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);

/// "0.993 %". Returns 0 % of 0.
std::string percent_of(std::int64_t part, std::int64_t whole);

/// Aligns cells in columns: the first column to the left, the others to the right. There must be at least one line, and
/// no line may have more cells than the first.
std::string columns(const std::vector<std::vector<std::string>>& lines);

/// Makes external text fit for an error message: replaces control characters and shortens long text.
std::string one_line(std::string_view text, std::size_t max_length = 200);

/// Parses the whole text as a finite decimal number.
std::optional<double> parse_number(std::string_view text);

}  // namespace common
