// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hashed_wheel_timer/detail/export.h"

namespace hwt {

namespace internal {
class Sleeper;
}

namespace detail {

/// Holds back the calls of LoopTimer::on_earlier() that the calling thread has to make for one timer. A KeyedTimer uses
/// the timer while it holds a lock, and a RepeatedTimer while other threads wait for it. The function of on_earlier()
/// may use the same object. So the thread calls that function afterwards, by make().
///
/// No code of the user may run while calls are held back, because that code may wait for the loop. Lives on the stack
/// of the thread; the objects of one thread are nested.
class HWT_API HeldCalls {
 public:
  /// Begins to hold back the calls of the timer with this sleeper. The timer may be gone.
  explicit HeldCalls(internal::Sleeper& sleeper) noexcept : sleeper_(sleeper) { hold(); }
  /// Calls make() if calls are held back.
  ~HeldCalls() {
    if (holds_) make();
  }
  HeldCalls(const HeldCalls&) = delete;
  HeldCalls& operator=(const HeldCalls&) = delete;

  /// Ceases to hold calls back, and makes the call if there is one. Precondition: calls are held back.
  void make() noexcept;
  /// Holds calls back again. Precondition: none are held back.
  void hold() noexcept;

  /// Holds back a call of the timer with this sleeper, if the calling thread holds back its calls. Returns whether it
  /// does. For the timer, which otherwise makes the call.
  static bool hold_back(internal::Sleeper& sleeper) noexcept;

 private:
  internal::Sleeper& sleeper_;  // not used unless owed_, because the timer may be gone
  HeldCalls* outer_ = nullptr;  // of this thread
  bool holds_ = false;
  bool owed_ = false;  // a call was begun, so the function stays until it is finished
};

}  // namespace detail
}  // namespace hwt
