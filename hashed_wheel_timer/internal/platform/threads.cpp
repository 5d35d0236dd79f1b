// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/platform/threads.h"

#include <atomic>
#include <utility>

#if defined(__linux__)
#include <sched.h>
#endif
#if defined(_WIN32)
#include "hashed_wheel_timer/internal/platform/windows_api.h"
#else
#include <pthread.h>
#include <unistd.h>
#endif

namespace hwt::internal {

namespace {

// relaxed: only fork() changes it, and the child has a copy of everything that the forking thread did.
constinit std::atomic<std::uint64_t> forks{0};
#if !defined(_WIN32)
[[maybe_unused]] const int counts_forks =
    pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
#endif

void name_this_thread() noexcept {
#if defined(__linux__)
  pthread_setname_np(pthread_self(), "hwt-worker");
#elif defined(__APPLE__)
  pthread_setname_np("hwt-worker");
#elif defined(_WIN32)
  // Looked up: Windows has it since version 10, headers and libraries of some compilers do not.
  using SetDescription = HRESULT(WINAPI*)(HANDLE, PCWSTR);
  const HMODULE kernel = GetModuleHandleW(L"kernel32.dll");
  void* const found =
      kernel == nullptr ? nullptr : reinterpret_cast<void*>(GetProcAddress(kernel, "SetThreadDescription"));
  if (found != nullptr) reinterpret_cast<SetDescription>(found)(GetCurrentThread(), L"hwt-worker");
#endif
}

#if defined(__linux__)
/// The processors that the process may use, as taskset sets them. Read when the library is loaded, because a program
/// may pin its threads to fewer later.
struct Processors {
  Processors() noexcept : known(sched_getaffinity(0, sizeof set, &set) == 0) {}

  cpu_set_t set{};
  bool known;  // false on a machine with more processors than a cpu_set_t holds
};
const Processors processors_at_start;

/// Gives a new thread the default policy and the processors of the process. The maker calls it, because the new thread
/// inherits the maker's processors and may wait long for one.
void give_defaults(std::thread& thread) noexcept {
  const pthread_t handle = thread.native_handle();
  const sched_param none{};
  pthread_setschedparam(handle, SCHED_OTHER, &none);
  if (processors_at_start.known)
    pthread_setaffinity_np(handle, sizeof processors_at_start.set, &processors_at_start.set);
}
#else
void give_defaults(std::thread&) noexcept {}
#endif

}  // namespace

std::int64_t this_process() noexcept {
#if defined(_WIN32)
  return 0;  // no fork
#else
  // The count, because a child in a new PID namespace may have the parent's number.
  return static_cast<std::int64_t>(fork_count() << 32) | getpid();
#endif
}

std::uint64_t fork_count() noexcept { return forks.load(std::memory_order_relaxed); }

std::thread make_worker_thread(std::function<void()> body) {
  std::thread thread([body = std::move(body)] {
    name_this_thread();
    body();
  });
  give_defaults(thread);
  return thread;
}

}  // namespace hwt::internal
