// SPDX-License-Identifier: Apache-2.0
// Parking on Linux, by a futex.

#include "hashed_wheel_timer/internal/platform/parking.h"

#if defined(HWT_PARKING_LINUX)

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <limits>

#include "hashed_wheel_timer/internal/time/clock.h"

namespace hwt::internal {

namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) &&
              std::atomic<std::uint32_t>::is_always_lock_free);

// Where time_t has been widened, the system call of the old name still reads narrow times.
#if defined(SYS_futex_time64)
constexpr long kFutex = sizeof(std::time_t) > sizeof(long) ? SYS_futex_time64 : SYS_futex;
#else
constexpr long kFutex = SYS_futex;
#endif

/// Waits until `time`, or until the thread is woken or interrupted. Returns at once if the word is not 0. Returns false
/// if the time has come.
bool wait_while_zero(std::atomic<std::uint32_t>& word, std::int64_t time) noexcept {
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr std::int64_t kLast = (std::numeric_limits<std::time_t>::max)();
  const std::int64_t from_zero = std::max<std::int64_t>(time, 0);
  std::timespec end{};
  end.tv_sec = static_cast<std::time_t>(std::min(from_zero / kSecond, kLast));
  end.tv_nsec = static_cast<long>(from_zero % kSecond);
  // FUTEX_WAIT_BITSET takes a time of CLOCK_MONOTONIC, which is steady_clock. FUTEX_WAIT would take a duration.
  const long result = syscall(kFutex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0U,
                              time == kForever ? nullptr : &end, nullptr, FUTEX_BITSET_MATCH_ANY);
  if (result == 0 || errno == EAGAIN || errno == EINTR) return true;
  // Looks at the time after any other error too, such as that of an old kernel without the system call. Then the thread
  // spins, but not beyond the time.
  return steady_now() < time;
}

}  // namespace

void Parking::park_until(std::int64_t time) noexcept {
  while (permit_.load(std::memory_order_relaxed) == 0 && wait_while_zero(permit_, time)) {
  }
  permit_.exchange(0, std::memory_order_acquire);
}

void Parking::set_permit() noexcept { permit_.exchange(1, std::memory_order_release); }

void Parking::wake_sleeper() noexcept { syscall(kFutex, &permit_, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1); }

}  // namespace hwt::internal

#endif
