#pragma once

namespace hwt::internal {

/// While one lives, the system ends the sleeps of this thread as exactly as it can. Linux lets each take 50 us longer
/// than asked for, unless told otherwise, so that it can end several at once; that is the thread's "timer slack". Its
/// value of before comes back at the end: the thread may have another life, and threads that it starts inherit it.
/// Other systems, and real-time policies, have nothing of the kind; then this does nothing.
class ExactSleeps {
 public:
  /// `wanted`: otherwise it does nothing.
  explicit ExactSleeps(bool wanted) noexcept;
  ~ExactSleeps();
  ExactSleeps(const ExactSleeps&) = delete;
  ExactSleeps& operator=(const ExactSleeps&) = delete;

 private:
  int slack_before_ = 0;  // ns; 0: it is as it was
};

}  // namespace hwt::internal
