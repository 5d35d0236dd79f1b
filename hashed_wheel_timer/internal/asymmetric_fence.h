#pragma once

#include <atomic>

namespace hwt::internal {

/// A pair of fences for store-then-load on two threads (Dekker): a thread that stores, calls light_fence() and loads,
/// and a thread that stores, calls heavy_fence() and loads, cannot both miss the other's store. The light side, which
/// every new_timeout() passes, costs nothing where the system can make the heavy side pay for both (membarrier on
/// Linux, FlushProcessWriteBuffers on Windows); elsewhere both are full fences. As folly and liburcu do.
class AsymmetricFence {
 public:
  static void light() noexcept {
    if (heavy_pays_for_both.load(std::memory_order_relaxed)) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      full();
    }
  }
  static void heavy() noexcept;

  /// Asks the system once per process; every timer's constructor calls it before there is a light side.
  static void prepare() noexcept;

 private:
  static void full() noexcept;

  // Written by prepare(), and cleared if the system withdraws the call later.
  static std::atomic<bool> heavy_pays_for_both;
};

}  // namespace hwt::internal
