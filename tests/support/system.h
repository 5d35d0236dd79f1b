#pragma once

// Functions of the operating system that tests need, on Windows and POSIX.

#include <array>
#include <chrono>
#include <ctime>
#include <optional>
#include <string>

#if defined(_WIN32)
#include "hashed_wheel_timer/internal/platform/windows_api.h"
#else
#include <pthread.h>
#endif

namespace hwt::test {

/// Sleeps for less than a second. Returns false if a signal, or on Windows an asynchronous procedure call, has ended
/// the sleep early.
inline bool slept_undisturbed(std::chrono::milliseconds duration) {
#if defined(_WIN32)
  return SleepEx(static_cast<DWORD>(duration.count()), TRUE) == 0;
#else
  const std::timespec rest{0, static_cast<long>(std::chrono::nanoseconds(duration).count())};
  return ::nanosleep(&rest, nullptr) == 0;
#endif
}

/// Returns the processor time of the process in seconds. On Windows, std::clock() would return the elapsed time.
inline double processor_seconds() {
#if defined(_WIN32)
  FILETIME created, ended, kernel, user;
  GetProcessTimes(GetCurrentProcess(), &created, &ended, &kernel, &user);
  const auto seconds = [](FILETIME time) { return time.dwHighDateTime * 429.4967296 + time.dwLowDateTime * 1e-7; };
  return seconds(kernel) + seconds(user);
#else
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
#endif
}

/// Returns the name of this thread, as debuggers show it. Returns nothing on systems without a function for this.
inline std::optional<std::string> thread_name() {
#if defined(_WIN32)
  using GetDescription = HRESULT(WINAPI*)(HANDLE, PWSTR*);
  void* const found =
      reinterpret_cast<void*>(GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "GetThreadDescription"));
  PWSTR name = nullptr;
  if (found == nullptr || FAILED(reinterpret_cast<GetDescription>(found)(GetCurrentThread(), &name))) return {};
  std::string narrow;
  for (PWSTR c = name; *c != 0; ++c) narrow += static_cast<char>(*c);
  LocalFree(name);
  return narrow;
#elif defined(__linux__) || defined(__APPLE__)
  std::array<char, 64> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return std::string(name.data());
#else
  return {};
#endif
}

}  // namespace hwt::test
