#pragma once

// In place of the library's: full fences on both sides, as where the system cannot help. So two light sides order each
// other here. In the library they need not, and it does not rely on that.

#include <atomic>

namespace hwt::internal {

class AsymmetricFence {
 public:
  static void light() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }
  static void heavy() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }
  static void full() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }
  static void prepare() noexcept {}
};

}  // namespace hwt::internal
