// SPDX-License-Identifier: Apache-2.0
#if defined(_WIN32)

#include "hashed_wheel_timer/internal/platform/waiting.h"
#include "hashed_wheel_timer/internal/platform/windows_api.h"

namespace hwt::internal {

namespace {

/// Finds a function of Windows 8 and later at run time, because not every toolchain has the library to link with.
template <class Function>
Function* in_system(const char* name) noexcept {
  return reinterpret_cast<Function*>(
      reinterpret_cast<void*>(GetProcAddress(GetModuleHandleW(L"kernelbase.dll"), name)));
}

}  // namespace

void wait_at(const void* address, const void* seen, std::size_t size) noexcept {
  using Wait = BOOL WINAPI(const volatile void*, const void*, SIZE_T, DWORD);
  static Wait* const wait_on_address = in_system<Wait>("WaitOnAddress");
  wait_on_address(address, seen, size, INFINITE);
}

void wake_all_at(const void* address) noexcept {
  using Wake = void WINAPI(const void*);
  static Wake* const wake_by_address_all = in_system<Wake>("WakeByAddressAll");
  wake_by_address_all(address);
}

}  // namespace hwt::internal

#endif
