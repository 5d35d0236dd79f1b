#include "hashed_wheel_timer/internal/platform/error_log.h"

#include <array>
#include <cstdio>
#include <cstring>

#include "hashed_wheel_timer/internal/platform/diagnostics.h"

namespace hwt::internal {

void ErrorLog::report(const std::exception_ptr& error, const char* origin) noexcept {
  const LinePerSecond::Turn turn = lines_.take_turn();
  if (!turn) return;
  with_text_of(error, [&](const char* text) {
    std::array<char, 500> what{};  // no allocation: this may report the lack of memory
    std::snprintf(what.data(), what.size(), "%s", text);
    make_one_line({what.data(), std::strlen(what.data())});
    std::fprintf(stderr, "hashed_wheel_timer: an exception was thrown by %s: %s%s\n", origin, what.data(),
                 turn.left_out().data());
  });
}

}  // namespace hwt::internal
