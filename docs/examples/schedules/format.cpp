#include "format.h"

#include <array>
#include <cstddef>
#include <cstdio>

namespace schedules {

std::string in_seconds(std::chrono::nanoseconds value, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f s", decimals, std::chrono::duration<double>(value).count());
  return text.data();
}

std::string in_utc(std::chrono::sys_seconds time) {
  static constexpr std::array kNames{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s %04d-%02u-%02u %02d:%02d:%02d",
                kNames.at(std::chrono::weekday(day).c_encoding()), static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text.data();
}

}  // namespace schedules
