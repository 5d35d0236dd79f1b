// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/platform/exact_sleeps.h"

#if defined(__linux__)
#include <sys/prctl.h>
#elif defined(__APPLE__)
#include <mach/mach.h>
#include <pthread.h>
#endif

namespace hwt::internal {

#if defined(__linux__)

ExactSleeps::ExactSleeps(bool wanted) noexcept {
  constexpr unsigned long kLeast = 1;  // ns; 0 would stand for the default
  if (!wanted) return;
  // prctl() returns an int, so a slack above 2 s is not read correctly. If a seccomp filter refuses the call, the slack
  // stays as it is. Newer kernels return 0 under a real-time policy, which has no slack. 1 is kLeast already.
  const int before = prctl(PR_GET_TIMERSLACK);
  if (before > 1 && prctl(PR_SET_TIMERSLACK, kLeast) == 0) before_ = before;
}

ExactSleeps::~ExactSleeps() {
  if (before_ != kUntouched) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(before_));
}

#elif defined(__APPLE__)

namespace {

/// The most exact one is LATENCY_QOS_TIER_0.
bool set_tier(int tier) noexcept {
  thread_latency_qos_policy_data_t policy{tier};
  return thread_policy_set(pthread_mach_thread_np(pthread_self()), THREAD_LATENCY_QOS_POLICY,
                           reinterpret_cast<thread_policy_t>(&policy), THREAD_LATENCY_QOS_POLICY_COUNT) == KERN_SUCCESS;
}

}  // namespace

ExactSleeps::ExactSleeps(bool wanted) noexcept {
  if (!wanted) return;
  thread_latency_qos_policy_data_t before{};
  mach_msg_type_number_t count = THREAD_LATENCY_QOS_POLICY_COUNT;
  boolean_t by_default = FALSE;
  const kern_return_t got = thread_policy_get(pthread_mach_thread_np(pthread_self()), THREAD_LATENCY_QOS_POLICY,
                                              reinterpret_cast<thread_policy_t>(&before), &count, &by_default);
  if (got == KERN_SUCCESS && set_tier(LATENCY_QOS_TIER_0)) before_ = before.thread_latency_qos_tier;
}

ExactSleeps::~ExactSleeps() {
  if (before_ != kUntouched) set_tier(before_);
}

#else

ExactSleeps::ExactSleeps(bool) noexcept {}
ExactSleeps::~ExactSleeps() = default;

#endif

}  // namespace hwt::internal
