#pragma once

// A seccomp filter, as sandboxed programs have one. For Linux, and for a forked child, because a filter stays for good.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "gtest/gtest.h"
#include "tests/support/forked_child.h"

namespace hwt::test {

template <std::size_t kSize>
bool install(std::array<sock_filter, kSize> program) {
  const sock_fprog filter{kSize, program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// Gives a system call this verdict from now on. Returns false if the system does not allow that or has no filters.
inline bool from_now_on(long call, std::uint32_t verdict) {
  return install<4>({{{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<std::uint32_t>(call)},
                      {BPF_RET | BPF_K, 0, 0, verdict},
                      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}}});
}

/// Like from_now_on(), but only for calls with this first argument.
inline bool from_now_on_with(long call, std::uint32_t first_argument, std::uint32_t verdict) {
  constexpr std::size_t kLowHalf = std::endian::native == std::endian::little ? 0 : 4;
  return install<6>({{{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                      {BPF_JMP | BPF_JEQ | BPF_K, 0, 3, static_cast<std::uint32_t>(call)},
                      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, args) + kLowHalf},
                      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, first_argument},
                      {BPF_RET | BPF_K, 0, 0, verdict},
                      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}}});
}

/// Runs f() in a forked child. Skips the test if f() returns false, because the system has no filters.
template <class F>
void run_in_child(F f) {
  constexpr int kNoFilters = 77;
  const int status = status_of_child([&] { return f() ? 0 : kNoFilters; });
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoFilters) GTEST_SKIP() << "this system has no filters";
  EXPECT_EQ(status, 0);
}

}  // namespace hwt::test
