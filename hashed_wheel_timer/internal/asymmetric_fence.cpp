#include "hashed_wheel_timer/internal/asymmetric_fence.h"

#include <chrono>
#include <thread>

#include "hashed_wheel_timer/internal/thread_sanitizer.h"

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(_WIN32)
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#endif

namespace hwt::internal {

std::atomic<bool> AsymmetricFence::heavy_pays_for_both{false};

namespace {

#if defined(__linux__) && defined(SYS_membarrier)
// From linux/membarrier.h, which older systems lack.
constexpr int kQuery = 0;
constexpr int kPrivateExpedited = 1 << 3;
constexpr int kRegisterPrivateExpedited = 1 << 4;

long membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0); }

[[maybe_unused]] bool register_with_system() noexcept {
  const long supported = membarrier(kQuery);
  return supported > 0 && (supported & kPrivateExpedited) != 0 && membarrier(kRegisterPrivateExpedited) == 0;
}
bool flush_all_processors() noexcept { return membarrier(kPrivateExpedited) == 0; }
#elif defined(_WIN32)
[[maybe_unused]] bool register_with_system() noexcept { return true; }
bool flush_all_processors() noexcept {
  FlushProcessWriteBuffers();
  return true;
}
#else
[[maybe_unused]] bool register_with_system() noexcept { return false; }
bool flush_all_processors() noexcept { return false; }
#endif

}  // namespace

void AsymmetricFence::prepare() noexcept {
#if !defined(HWT_THREAD_SANITIZER)
  [[maybe_unused]] static const bool asked = [] {
    heavy_pays_for_both.store(register_with_system(), std::memory_order_relaxed);
    return true;
  }();
#endif
}

void AsymmetricFence::full() noexcept {
#if defined(HWT_THREAD_SANITIZER)
  // ThreadSanitizer knows no fences. Read-modify-writes of one variable are totally ordered, each acquiring what the
  // one before it released: of two threads, the later one sees the store of the earlier.
  static std::atomic<int> everyone{0};
  everyone.fetch_add(0, std::memory_order_acq_rel);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

void AsymmetricFence::heavy() noexcept {
  if (heavy_pays_for_both.load(std::memory_order_relaxed)) {
    if (flush_all_processors()) return;
    // Withdrawn after it had been granted, by a seccomp filter for instance. From now on the light side fences itself;
    // what passed it before has left its store buffer long before this sleep ends.
    heavy_pays_for_both.store(false, std::memory_order_relaxed);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  full();
}

}  // namespace hwt::internal
