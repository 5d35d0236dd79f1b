// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hwt::internal::cycle_counter {

/// Returns whether the kernel itself derives steady_clock from the cycle counter. Then the counter runs at one rate, on
/// all processors alike, in all states of power. Reads a file each time, because the kernel may change its mind.
bool is_the_clock() noexcept;

/// Reads the counter. The processor may do so some instructions early. 0 where there is none.
inline std::uint64_t read() noexcept {
#if defined(__linux__) && defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__linux__) && defined(__aarch64__)
  std::uint64_t cycles = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(cycles));
  return cycles;
#else
  return 0;
#endif
}

}  // namespace hwt::internal::cycle_counter
