#pragma once

namespace hwt::internal {

/// While one lives, the system ends the sleeps of this thread as exactly as it can. Linux lets each take 50 us longer
/// than asked for, unless told otherwise, and macOS some time that depends on the thread's tier, so that they can end
/// several at once. What the thread had before comes back at the end: it may have another life, and threads that it
/// starts inherit it. Other systems, and real-time policies, have nothing of the kind; then this does nothing. (On
/// Windows all sleeps are rounded alike, and `Parking` does not use those.)
class ExactSleeps {
 public:
  /// `wanted`: otherwise it does nothing.
  explicit ExactSleeps(bool wanted) noexcept;
  ~ExactSleeps();
  ExactSleeps(const ExactSleeps&) = delete;
  ExactSleeps& operator=(const ExactSleeps&) = delete;

 private:
  static constexpr int kUntouched = -1;

  [[maybe_unused]] int before_ = kUntouched;  // on Linux in ns, on macOS a tier
};

}  // namespace hwt::internal
