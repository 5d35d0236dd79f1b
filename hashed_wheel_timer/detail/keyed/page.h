#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace hwt::detail {

/// A piece of a KeyedTable: a hash table of a few kilobytes, which the KeyedTable grows, splits and frees. 16 bytes, so
/// that a search finds the cells without a look at anything in between.
///
/// Open addressing, linear probing, and the hash in the cell: a search compares hashes before it fetches anything else.
/// (Among a million keys in random order, std::unordered_map of libstdc++ takes 1.6 times as long for a move.) Knuth,
/// "The Art of Computer Programming", volume 3, section 6.4, algorithms L and R.
template <class Cell>
class KeyedPage {
 public:
  using Cells = std::unique_ptr<Cell[]>;

  static Cells allocate(int bits) { return std::make_unique<Cell[]>(std::size_t{1} << bits); }

  /// 2^bits cells, which it has until free(). `depth`: how many bits of the hash all that is in here have in common.
  KeyedPage(Cells cells, int bits, int depth) noexcept
      : cells_(cells.release()), bits_(static_cast<std::uint8_t>(bits)), depth_(static_cast<std::uint8_t>(depth)) {}
  void free() noexcept { Cells(std::exchange(cells_, nullptr)); }

  int bits() const noexcept { return bits_; }
  int depth() const noexcept { return depth_; }

  /// At most 5 of 8 cells are taken: a hit then needs two probes on average, and four if keys come in rows: see
  /// mixed_hash().
  bool full() const noexcept { return (std::size_t{size_} + 1) * 8 > (std::size_t{1} << bits_) * 5; }

  /// The cell with this hash that `is_it(cell)`, or null.
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

  /// Takes a cell out. Those after it move up into the gap, so there are no tombstones.
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

  /// Calls f(cell) for each one that is taken.
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
