#include "hashed_wheel_timer/internal/platform/exact_sleeps.h"

#if defined(__linux__)
#include <sys/prctl.h>
#endif

namespace hwt::internal {

#if defined(__linux__)

ExactSleeps::ExactSleeps(bool wanted) noexcept {
  constexpr unsigned long kLeast = 1;  // ns; 0 would stand for the default
  if (!wanted) return;
  // Not more than an int holds (2 s), and nothing where a filter refuses the call: then it stays as it is.
  const int before = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  if (before > 1 && prctl(PR_SET_TIMERSLACK, kLeast, 0, 0, 0) == 0) slack_before_ = before;
}

ExactSleeps::~ExactSleeps() {
  if (slack_before_ != 0) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack_before_), 0, 0, 0);
}

#else

ExactSleeps::ExactSleeps(bool) noexcept {}
ExactSleeps::~ExactSleeps() = default;

#endif

}  // namespace hwt::internal
