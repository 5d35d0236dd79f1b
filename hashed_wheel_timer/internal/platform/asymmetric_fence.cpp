// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"

#include <chrono>
#include <thread>

#include "hashed_wheel_timer/internal/platform/sanitizers.h"

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(_WIN32)
#include "hashed_wheel_timer/internal/platform/windows_api.h"
#endif

namespace hwt::internal {

constinit std::atomic<AsymmetricFence::Payer> AsymmetricFence::payer{Payer::Unknown};

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
/// Returns false under Wine, whose FlushProcessWriteBuffers() may do nothing, as in Wine 8, and reports no error.
[[maybe_unused]] bool register_with_system() noexcept {
  const HMODULE ntdll = GetModuleHandleW(L"ntdll.dll");
  return ntdll != nullptr && GetProcAddress(ntdll, "wine_get_version") == nullptr;
}
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
  // Not a static of this function: a fork() in the midst of it would leave its guard locked in the child for ever. So
  // several threads may ask at once; each knows the answer when it returns, and the first one counts.
  if (payer.load(std::memory_order_relaxed) != Payer::Unknown) return;
  const Payer answer = register_with_system() ? Payer::HeavySide : Payer::EachSide;
  Payer unknown = Payer::Unknown;
  payer.compare_exchange_strong(unknown, answer, std::memory_order_relaxed);
#endif
}

void AsymmetricFence::full() noexcept {
#if defined(HWT_THREAD_SANITIZER)
  // ThreadSanitizer knows no fences. Read-modify-writes of one variable are totally ordered, and each acquires the
  // release of the one before. So the second of two threads sees the stores of the first.
  static constinit std::atomic<int> everyone{0};
  everyone.fetch_add(0, std::memory_order_acq_rel);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

void AsymmetricFence::heavy() noexcept {
  const Payer seen = payer.load(std::memory_order_relaxed);
  if (seen == Payer::HeavySide && flush_all_processors()) return;
  if (seen == Payer::HeavySide || seen == Payer::Withdrawn) {
    // The system no longer allows the call, for example because of a new seccomp filter. From now on the light side
    // fences itself. The stores of threads that passed it before leave their store buffers long before this sleep ends.
    // Until then every other heavy side must wait as well.
    payer.store(Payer::Withdrawn, std::memory_order_relaxed);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    payer.store(Payer::EachSide, std::memory_order_relaxed);
  }
  full();
}

}  // namespace hwt::internal
