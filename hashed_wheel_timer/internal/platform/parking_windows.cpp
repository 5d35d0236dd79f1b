// SPDX-License-Identifier: Apache-2.0
// On Windows: an event, and a timer of high resolution. Other waits with a time round to the system's ticks of 15.6 ms.

#include "hashed_wheel_timer/internal/platform/parking.h"

#if defined(HWT_PARKING_WINDOWS)

#include <array>
#include <system_error>

#include "hashed_wheel_timer/internal/platform/windows_api.h"
#include "hashed_wheel_timer/internal/time/clock.h"

namespace hwt::internal {

namespace {

/// Returns the handle. Throws std::system_error if the system could not create the object.
HANDLE made(HANDLE object, const char* what) {
  if (object == nullptr) throw std::system_error(static_cast<int>(GetLastError()), std::system_category(), what);
  return object;
}

HANDLE make_timer() {
  constexpr DWORD kHighResolution = 2;  // CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, which older headers lack
  const HANDLE exact = CreateWaitableTimerExW(nullptr, nullptr, kHighResolution, TIMER_ALL_ACCESS);
  // Windows before 10, version 1803, refuses the flag.
  return exact != nullptr ? exact : CreateWaitableTimerExW(nullptr, nullptr, 0, TIMER_ALL_ACCESS);
}

}  // namespace

Parking::Handle::~Handle() { CloseHandle(object); }

// Both objects reset themselves when they end a wait (auto-reset).
Parking::Parking()
    : permit_(made(CreateEventW(nullptr, FALSE, FALSE, nullptr), "CreateEvent")),
      timer_(made(make_timer(), "CreateWaitableTimerEx")) {}

void Parking::park_until(std::int64_t time) noexcept {
  if (time == kForever) {
    WaitForSingleObject(permit_.object, INFINITE);
    return;
  }
  const std::array<HANDLE, 2> either{permit_.object, timer_.object};
  // The timer counts by a clock that is not quite that of steady_clock.
  for (std::int64_t now = steady_now(); now < time; now = steady_now()) {
    LARGE_INTEGER length;
    length.QuadPart = -((time - now) / 100 + 1);  // below zero: a length of time, in units of 100 ns
    SetWaitableTimer(timer_.object, &length, 0, nullptr, nullptr, FALSE);
    if (WaitForMultipleObjects(either.size(), either.data(), FALSE, INFINITE) == WAIT_OBJECT_0) return;
  }
  WaitForSingleObject(permit_.object, 0);
}

// SetEvent() also wakes, so wake_sleeper() has nothing to do.
void Parking::set_permit() noexcept { SetEvent(permit_.object); }
void Parking::wake_sleeper() noexcept {}

}  // namespace hwt::internal

#endif
