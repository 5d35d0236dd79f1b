#pragma once

#include <span>

namespace hwt::detail {

/// Makes a text one line: control characters become question marks. Messages show texts that come from outside.
inline void make_one_line(std::span<char> text) noexcept {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
}

}  // namespace hwt::detail
