#include "common/format.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace common {
namespace {

/// Returns the number of UTF-8 characters.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string with_thousands(std::int64_t value) {
  std::string digits = std::to_string(value);
  for (auto at = static_cast<int>(digits.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3) {
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return digits;
}

std::string short_duration(std::chrono::duration<double, std::nano> value) {
  const double ns = value.count();
  if (ns == 0) return "0 s";
  // From each of these values on, four digits of the smaller unit would round up to 1000 or more.
  if (ns >= 9.9995e12) return with_thousands(std::llround(ns / 1e9)) + " s";
  if (ns >= 999'950'000) return formatted("%.4g s", ns / 1e9);
  if (ns >= 999'950) return formatted("%.4g ms", ns / 1e6);
  return ns >= 999.95 ? formatted("%.4g \xC2\xB5s", ns / 1e3) : formatted("%.4g ns", ns);
}

std::string formatted(const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  char text[500];
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  return text;
}

std::string in_seconds(std::chrono::duration<double> value) { return formatted("%.1f s", value.count()); }

std::string percent_of(std::int64_t part, std::int64_t whole) {
  return formatted("%.3f %%", whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string columns(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths(lines.front().size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width_of(line[i]));
  }
  std::string text;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string padding(widths[i] - width_of(line[i]), ' ');
      text += "  " + (i == 0 ? line[i] + padding : padding + line[i]);
    }
    text += '\n';
  }
  return text;
}

std::string one_line(std::string_view text, std::size_t max_length) {
  std::size_t length = std::min(max_length, text.size());
  while (length < text.size() && length > 0 && (text[length] & 0xC0) == 0x80) --length;  // not within a character
  std::string line(text.substr(0, length));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return length < text.size() ? line + "..." : line;
}

std::optional<double> parse_number(std::string_view text) {
  // strtod alone also accepts "inf", "0x10" and leading blanks. Some libraries lack from_chars for double.
  if (text.empty() || text.find_first_not_of("0123456789+-.eE") != std::string_view::npos) return std::nullopt;
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace common
