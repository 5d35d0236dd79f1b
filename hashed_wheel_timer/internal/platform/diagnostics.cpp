#include "hashed_wheel_timer/internal/platform/diagnostics.h"

#include <cstdio>
#include <cstdlib>

namespace hwt::internal {

void make_one_line(std::span<char> text) noexcept {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
}

void warn(std::string_view message) noexcept {
  std::fprintf(stderr, "hashed_wheel_timer: %.*s\n", static_cast<int>(message.size()), message.data());
}

void die(std::string_view message) noexcept {
  warn(message);
  std::abort();
}

}  // namespace hwt::internal
