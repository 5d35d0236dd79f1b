#include "harness/format.h"

#include <charconv>
#include <iterator>
#include <system_error>

namespace perf {

std::string with_thousands(std::uint64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t left = digits.size(); left > 3; left -= 3) digits.insert(left - 3, 1, ',');
  return digits;
}

std::string fixed(double value, int decimals) {
  char text[400];
  const std::to_chars_result end =
      std::to_chars(std::begin(text), std::end(text), value, std::chars_format::fixed, decimals);
  return {text, end.ptr};
}

std::string one_line(std::string_view text, std::size_t max_length) {
  std::string line(text.substr(0, max_length));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  if (text.size() > max_length) line += "...";
  return line;
}

std::optional<std::uint64_t> parse_whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace perf
