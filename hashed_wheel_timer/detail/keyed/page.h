// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace hwt::detail {

/// A part of a KeyedTable: a hash table that doubles when it is full, and never shrinks. At first it has no memory. A
/// Cell is free (is_free()) when it was made by default, and after it was moved from.
///
/// Open addressing, linear probing, and the hash in the cell: a search compares hashes before it fetches anything else.
/// (Among a million keys in random order, std::unordered_map of libstdc++ takes 1.6 times as long for a move.) Knuth,
/// "The Art of Computer Programming", volume 3, section 6.4, algorithms L and R.
template <class Cell>
class KeyedPage {
 public:
  std::size_t size() const noexcept { return size_; }

  /// Returns the cell with this hash for which is_it(cell) is true, or null.
  template <class Predicate>
  Cell* find(std::uint32_t hash, Predicate is_it) const {
    if (cells_ == nullptr) return nullptr;
    const std::uint32_t mask = capacity_ - 1;
    for (std::uint32_t at = hash & mask; !cells_[at].is_free(); at = (at + 1) & mask) {
      if (cells_[at].hash == hash && is_it(std::as_const(cells_[at]))) return &cells_[at];
    }
    return nullptr;
  }

  /// Doubles if one more cell would make more than 5 of 8 taken. Up to there a hit needs two probes on average, and
  /// four for consecutive keys: see mixed_hash(). Throws std::bad_alloc; then nothing has changed.
  void make_room() {
    if ((std::size_t{size_} + 1) * 8 <= std::size_t{capacity_} * 5) return;
    KeyedPage larger;
    larger.capacity_ = std::max<std::uint32_t>(capacity_ * 2, kSmallest);
    larger.cells_ = std::make_unique<Cell[]>(larger.capacity_);
    for_each([&larger](Cell& cell) { larger.insert(std::move(cell)); });
    std::swap(*this, larger);
  }

  /// Precondition: not all cells are taken.
  void insert(Cell&& cell) noexcept {
    const std::uint32_t mask = capacity_ - 1;
    std::uint32_t at = cell.hash & mask;
    while (!cells_[at].is_free()) at = (at + 1) & mask;
    cells_[at] = std::move(cell);
    ++size_;
  }

  /// Takes a cell out. Later cells move up into the gap, so there are no tombstones.
  Cell erase(Cell* cell) noexcept {
    Cell taken = std::move(*cell);
    --size_;
    const std::uint32_t mask = capacity_ - 1;
    auto gap = static_cast<std::uint32_t>(cell - cells_.get());
    for (std::uint32_t at = (gap + 1) & mask; !cells_[at].is_free(); at = (at + 1) & mask) {
      const std::uint32_t from_home = (at - cells_[at].hash) & mask;
      if (from_home < ((at - gap) & mask)) continue;  // its home is after the gap
      cells_[gap] = std::move(cells_[at]);
      gap = at;
    }
    return taken;
  }

  /// Calls f(cell) for each taken cell.
  template <class F>
  void for_each(F f) const {
    for (std::uint32_t i = 0; i < capacity_; ++i) {
      if (!cells_[i].is_free()) f(cells_[i]);
    }
  }

 private:
  static constexpr std::uint32_t kSmallest = 8;

  std::unique_ptr<Cell[]> cells_;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = 0;  // a power of two, or 0
};

}  // namespace hwt::detail
