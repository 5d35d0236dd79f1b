// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace hwt::internal {

/// A pair of fences for store-then-load on two threads (Dekker). One thread stores, calls light() and loads. The other
/// stores, calls heavy() and loads. At least one of them sees the other's store. Every new_timeout() passes the light
/// side. It costs nothing where a system call of the heavy side fences all threads: membarrier on Linux,
/// FlushProcessWriteBuffers on Windows. Elsewhere both are full fences. As folly and liburcu do.
class AsymmetricFence {
 public:
  static void light() noexcept {
    if (payer.load(std::memory_order_relaxed) == Payer::HeavySide) [[likely]] {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      full();
    }
  }
  static void heavy() noexcept;
  /// A full fence of this thread, for a store that a third thread must see: heavy() reaches one thread after another.
  static void full() noexcept;

  /// Asks the system once per process; every timer's constructor calls it before there is a light side.
  static void prepare() noexcept;

 private:
  // Unknown until prepare(), and with ThreadSanitizer for good, so that both sides call full(). EachSide for good, if
  // the system cannot help. If the system withdraws its help later, Withdrawn for a moment, then EachSide.
  enum class Payer : std::uint8_t { Unknown, EachSide, HeavySide, Withdrawn };
  static std::atomic<Payer> payer;
};

}  // namespace hwt::internal
