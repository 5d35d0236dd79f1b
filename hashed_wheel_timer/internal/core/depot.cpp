#include "hashed_wheel_timer/internal/core/depot.h"

namespace hwt::internal {

Node* Depot::take(std::int64_t enough) noexcept {
  std::int64_t taken = 0;
  Node* const batches = free_.take_some(enough, taken);
  if (const std::size_t left = free_.nodes(); left < fewest_.load(std::memory_order_relaxed)) {
    fewest_.store(left, std::memory_order_relaxed);
  }
  return batches;
}

}  // namespace hwt::internal
