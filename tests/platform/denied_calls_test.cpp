// A seccomp filter that refuses a system call from the beginning. The library does without.

#if defined(__linux__)

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/platform/exact_sleeps.h"
#include "hashed_wheel_timer/internal/platform/parking.h"
#include "hashed_wheel_timer/internal/time/clock.h"
#include "hashed_wheel_timer/internal/time/cycle_counter.h"
#include "tests/support/denied_call.h"

namespace hwt::internal {
namespace {

/// Calls f() on a thread that has set the filter. The filter applies to that thread only. If the system has no filters,
/// the test is marked as skipped, but the caller goes on.
template <class F>
void run_with(bool (*set_filter)(), F f) {
  bool filtered = false;
  std::thread([&] {
    filtered = set_filter();
    if (filtered) f();
  }).join();
  if (!filtered) GTEST_SKIP() << "this system has no filters";
}

TEST(DeniedCall, TheCycleCounterIsNotTheClockIfNoFileTellsSo) {
  const auto is_not = [] { EXPECT_FALSE(cycle_counter::is_the_clock()); };
  run_with([] { return test::from_now_on(SYS_openat, SECCOMP_RET_ERRNO | EPERM); }, is_not);
  run_with([] { return test::from_now_on(SYS_read, SECCOMP_RET_ERRNO | EPERM); }, is_not);
}

/// Returns the slack of this thread's sleeps in nanoseconds, in the words of the system.
std::string timer_slack() {
  std::ifstream file("/proc/" + std::to_string(syscall(SYS_gettid)) + "/timerslack_ns");
  std::string slack;
  std::getline(file, slack);
  return slack;
}

/// Otherwise the slack would not come back: this thread may be the user's.
TEST(DeniedCall, SleepsStayAsExactAsTheyAreIfTheSystemDoesNotTellHowExactTheyAre) {
  if (timer_slack().empty()) GTEST_SKIP() << "the system does not tell the slack";
  const auto ask = [] { return test::from_now_on_with(SYS_prctl, PR_GET_TIMERSLACK, SECCOMP_RET_ERRNO | EPERM); };
  run_with(ask, [] {
    const std::string before = timer_slack();
    {
      const ExactSleeps exact(true);
      EXPECT_EQ(timer_slack(), before);
    }
    EXPECT_EQ(timer_slack(), before);
  });
}

TEST(DeniedCall, ASleepWithoutFutexesEndsInTime) {
  test::run_in_child([] {
#if defined(SYS_futex_time64)
    test::from_now_on(SYS_futex_time64, SECCOMP_RET_ERRNO | EPERM);
#endif
    if (!test::from_now_on(SYS_futex, SECCOMP_RET_ERRNO | EPERM)) return false;
    const std::int64_t end = steady_now() + 5'000'000;
    Parking().park_until(end);
    if (steady_now() < end) std::abort();
    return true;
  });
}

#if defined(SYS_membarrier) && !HWT_TEST_THREAD_SANITIZER
/// Otherwise each pass over the inbox would make a useless system call, and pause after it.
TEST(DeniedCall, NoFenceAsksForMembarrierAgain) {
  for (const bool helps_first : {true, false}) {
    test::run_in_child([=] {
      if (helps_first) {
        AsymmetricFence::prepare();
        AsymmetricFence::heavy();
      }
      if (!test::from_now_on(SYS_membarrier, SECCOMP_RET_ERRNO | (helps_first ? EPERM : ENOSYS))) return false;
      helps_first ? AsymmetricFence::heavy() : AsymmetricFence::prepare();
      if (!test::from_now_on(SYS_membarrier, SECCOMP_RET_KILL)) return false;
      AsymmetricFence::heavy();
      AsymmetricFence::light();
      return true;
    });
  }
}

#endif

}  // namespace
}  // namespace hwt::internal

#endif
