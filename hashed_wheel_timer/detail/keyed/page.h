// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace hwt::detail {

/// A piece of a KeyedTable: a hash table of 8 to 1024 cells, which take up to 24 KiB. The KeyedTable grows, splits and
/// frees it. Only many equal hashes make it larger. The object has 16 bytes and is an element of KeyedTable::pages_, so
/// a search follows a single pointer from there to the cells. Copies of a page share its cells, which only free()
/// frees. A Cell is free (is_free()) when it was made by default, and after it was moved from.
///
/// Open addressing, linear probing, and the hash in the cell: a search compares hashes before it fetches anything else.
/// (Among a million keys in random order, std::unordered_map of libstdc++ takes 1.6 times as long for a move.) Knuth,
/// "The Art of Computer Programming", volume 3, section 6.4, algorithms L and R.
template <class Cell>
class KeyedPage {
 public:
  using Cells = std::unique_ptr<Cell[]>;

  static Cells allocate(int bits) { return std::make_unique<Cell[]>(std::size_t{1} << bits); }

  /// Takes 2^bits cells, and keeps them until free(). `depth`: how many bits of the hash are equal in all cells. They
  /// are the highest bits after those that chose the shard.
  KeyedPage(Cells cells, int bits, int depth) noexcept
      : cells_(cells.release()), bits_(static_cast<std::uint8_t>(bits)), depth_(static_cast<std::uint8_t>(depth)) {}
  void free() noexcept { Cells(std::exchange(cells_, nullptr)); }

  int bits() const noexcept { return bits_; }
  int depth() const noexcept { return depth_; }

  /// Returns whether one more cell would make more than 5 of 8 taken. Up to there a hit needs two probes on average,
  /// and four for consecutive keys: see mixed_hash().
  bool full() const noexcept { return (std::size_t{size_} + 1) * 8 > (std::size_t{1} << bits_) * 5; }

  /// Returns the cell with this hash for which is_it(cell) is true, or null.
  template <class Predicate>
  Cell* find(std::uint32_t hash, Predicate is_it) const {
    const std::uint32_t mask = last();
    for (std::uint32_t at = hash & mask; !cells_[at].is_free(); at = (at + 1) & mask) {
      if (cells_[at].hash == hash && is_it(std::as_const(cells_[at]))) return &cells_[at];
    }
    return nullptr;
  }

  /// Precondition: not all cells are taken.
  void insert(Cell&& cell) noexcept {
    const std::uint32_t mask = last();
    std::uint32_t at = cell.hash & mask;
    while (!cells_[at].is_free()) at = (at + 1) & mask;
    cells_[at] = std::move(cell);
    ++size_;
  }

  /// Takes a cell out. Later cells move up into the gap, so there are no tombstones.
  Cell erase(Cell* cell) noexcept {
    Cell taken = std::move(*cell);
    --size_;
    const std::uint32_t mask = last();
    auto gap = static_cast<std::uint32_t>(cell - cells_);
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
    for (std::size_t i = 0; i <= last(); ++i) {
      if (!cells_[i].is_free()) f(cells_[i]);
    }
  }

 private:
  std::uint32_t last() const noexcept { return (std::uint32_t{1} << bits_) - 1; }

  Cell* cells_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint8_t bits_ = 0;
  std::uint8_t depth_ = 0;
};

}  // namespace hwt::detail
