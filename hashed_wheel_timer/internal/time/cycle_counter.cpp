// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/time/cycle_counter.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string_view>
#endif

namespace hwt::internal {

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

bool cycle_counter::is_the_clock() noexcept {
#if defined(__x86_64__)
  constexpr std::string_view kCounter = "tsc\n";
#else
  constexpr std::string_view kCounter = "arch_sys_counter\n";
#endif
  const int file = ::open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  std::array<char, 64> text;
  const ssize_t size = ::read(file, text.data(), text.size());
  ::close(file);
  return size > 0 && std::string_view(text.data(), static_cast<std::size_t>(size)) == kCounter;
}

#else

bool cycle_counter::is_the_clock() noexcept { return false; }

#endif

}  // namespace hwt::internal
