// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hwt::internal {

/// While an object exists, the system ends the sleeps of this thread as exactly as it can. By default each sleep may
/// take longer, so that the system can end several at once. On Linux that is 50 us; on macOS it depends on the thread's
/// tier. The destructor restores the previous setting, because the thread may go on with other work, and threads that
/// it starts inherit the setting. Does nothing on other systems, and under real-time policies. (Windows rounds all
/// sleeps; `Parking` uses other calls there.)
class ExactSleeps {
 public:
  /// Does nothing unless `wanted`.
  explicit ExactSleeps(bool wanted) noexcept;
  ~ExactSleeps();
  ExactSleeps(const ExactSleeps&) = delete;
  ExactSleeps& operator=(const ExactSleeps&) = delete;

 private:
  static constexpr int kUntouched = -1;

  [[maybe_unused]] int before_ = kUntouched;  // on Linux in ns, on macOS a tier
};

}  // namespace hwt::internal
