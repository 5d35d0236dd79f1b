// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "hashed_wheel_timer/internal/wheel/wheel_item.h"
#include "hashed_wheel_timer/internal/wheel/zeroed_array.h"

namespace hwt::internal {

/// The next due tick of every bucket, in a tree in which each parent is the earliest of its eight children. So the
/// worker finds its next wake-up at the root, whatever the number of buckets.
///
/// A tick is stored as its complement, kNever - tick, so that the zero bytes of fresh memory mean "nothing due".
///
/// The integers and the memory are parameters so that tests/arithmetic can prove it with symbolic ones.
template <class Signed, class Size, class Array>
class BasicDueTree {
 public:
  explicit BasicDueTree(std::size_t buckets) : layout_(buckets), complement_(layout_.total) {}

  Signed earliest() const noexcept { return kNever - complement_[0]; }
  Signed of(Size bucket) const noexcept { return kNever - complement_[layout_.first_leaf() + bucket]; }

  /// Returns a bucket whose next due tick is the earliest.
  Size first() const noexcept {
    Size index = 0;
    for (std::size_t level = 1; level < layout_.levels; ++level) {
      index *= kFanOut;
      while (complement_[layout_.start[level] + index] != complement_[0]) ++index;
    }
    return index;
  }

  void set(Size bucket, Signed due) noexcept {
    using std::max;
    Signed complement = kNever - due;
    Size index = bucket;
    for (std::size_t level = layout_.levels; level-- > 0;) {
      auto&& node = complement_[layout_.start[level] + index];
      if (node == complement) return;
      node = complement;
      if (level == 0) return;
      const Size first_sibling = layout_.start[level] + index / kFanOut * kFanOut;
      const Size end = std::min<Size>(first_sibling + kFanOut, layout_.start[level] + layout_.size[level]);
      for (Size i = first_sibling; i < end; ++i) {
        const Signed sibling = complement_[i];
        complement = max(complement, sibling);
      }
      index /= kFanOut;
    }
  }

 protected:
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
  Array complement_;
};

using DueTree = BasicDueTree<Tick, std::size_t, ZeroedArray<Tick>>;

}  // namespace hwt::internal
