#include "common/format.h"

#include <cstdio>

namespace common {

std::string with_thousands(std::int64_t value) {
  std::string digits = std::to_string(value);
  const int first_digit = value < 0 ? 1 : 0;
  for (int at = static_cast<int>(digits.size()) - 3; at > first_digit; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return digits;
}

std::string counted(std::int64_t count, std::string_view noun) {
  return with_thousands(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string short_duration(std::chrono::duration<double, std::nano> value) {
  const double ns = value.count();
  const bool seconds = ns >= 999'950'000;
  const bool milliseconds = ns >= 999'950;
  char text[64];
  std::snprintf(text, sizeof text, "%.4g %s",
                ns / (seconds        ? 1e9
                      : milliseconds ? 1e6
                                     : 1e3),
                seconds        ? "s"
                : milliseconds ? "ms"
                               : "\xC2\xB5s");
  return text;
}

std::string one_line(std::string_view text, std::size_t max_length) {
  std::string line(text.substr(0, max_length));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  if (text.size() > max_length) line += "...";
  return line;
}

}  // namespace common
