#pragma once

#include <optional>
#include <string_view>

namespace common {

/// Without leading and trailing blanks.
std::string_view trimmed(std::string_view text);

/// The whole text as a finite decimal number.
std::optional<double> parse_number(std::string_view text);

}  // namespace common
