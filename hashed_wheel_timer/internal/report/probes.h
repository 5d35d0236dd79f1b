// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#endif

namespace hwt::internal {

/// USDT probes hwt:add, hwt:run and hwt:cancel, for perf, bpftrace and SystemTap, if the library was built with
/// sys/sdt.h. A probe is a no-op instruction, and only timers that trace origins come to one. `id` is the value of the
/// timeout's TimeoutId. For a timeout with a handle it is the value that a TimeoutId would have.
namespace probes {

#if defined(STAP_PROBE1)
inline constexpr bool kThere = true;
inline void add(std::uint64_t id, std::int64_t deadline, const char* text, std::uint32_t line) noexcept {
  STAP_PROBE4(hwt, add, id, deadline, text, line);
}
inline void run(std::uint64_t id) noexcept { STAP_PROBE1(hwt, run, id); }
inline void cancel(std::uint64_t id) noexcept { STAP_PROBE1(hwt, cancel, id); }
#else
inline constexpr bool kThere = false;
inline void add(std::uint64_t, std::int64_t, const char*, std::uint32_t) noexcept {}
inline void run(std::uint64_t) noexcept {}
inline void cancel(std::uint64_t) noexcept {}
#endif

}  // namespace probes
}  // namespace hwt::internal
