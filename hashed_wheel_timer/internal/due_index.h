#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/internal/wheel_item.h"
#include "hashed_wheel_timer/internal/zeroed_array.h"

namespace hwt::internal {

/// The next due tick of every bucket, and the earliest of all: a tree in which each parent is the earliest of its eight
/// children, so that the worker finds its next wake-up without looking at buckets, whatever their number.
///
/// A tick is stored as its urgency, kNever - tick: the zero bytes of fresh memory then mean "nothing due".
class DueIndex {
 public:
  explicit DueIndex(std::size_t buckets) : layout_(buckets), urgency_(layout_.total) {}

  Tick earliest() const noexcept { return kNever - urgency_[0]; }
  Tick of(std::size_t bucket) const noexcept { return kNever - urgency_[layout_.first_leaf() + bucket]; }

  void set(std::size_t bucket, Tick due) noexcept {
    std::int64_t urgency = kNever - due;
    std::size_t index = bucket;
    for (std::size_t level = layout_.levels; level-- > 0;) {
      std::int64_t& slot = urgency_[layout_.start[level] + index];
      if (slot == urgency) return;
      slot = urgency;
      if (level == 0) return;
      const std::size_t first_sibling = layout_.start[level] + index / kFanOut * kFanOut;
      const std::size_t end = std::min(first_sibling + kFanOut, layout_.start[level] + layout_.size[level]);
      for (std::size_t i = first_sibling; i < end; ++i) urgency = std::max(urgency, urgency_[i]);
      index /= kFanOut;
    }
  }

 private:
  static constexpr std::size_t kFanOut = 8;      // 64 bytes of ticks: one or two cache lines
  static constexpr std::size_t kMaxLevels = 12;  // 8^11 > 2^30 buckets

  // Level 0 is the root alone, the last level the buckets.
  struct Layout {
    explicit Layout(std::size_t buckets) {
      for (std::size_t n = buckets;; n = (n + kFanOut - 1) / kFanOut) {
        size[levels++] = n;
        if (n == 1) break;
      }
      std::reverse(size.begin(), size.begin() + static_cast<std::ptrdiff_t>(levels));
      for (std::size_t level = 0; level < levels; ++level) {
        start[level] = total;
        total += size[level];
      }
    }
    std::size_t first_leaf() const noexcept { return start[levels - 1]; }

    std::array<std::size_t, kMaxLevels> start{};
    std::array<std::size_t, kMaxLevels> size{};
    std::size_t levels = 0;
    std::size_t total = 0;
  };

  const Layout layout_;
  ZeroedArray<std::int64_t> urgency_;
};

}  // namespace hwt::internal
