#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "hashed_wheel_timer/timer.h"

namespace hwt::detail {

/// What a KeyedTimer holds: items by hash, each with its timeout. No locks, no user code but in the caller's predicate.
///
/// Open addressing, linear probing, and the hash in the cell: a search compares hashes before it fetches an item, and a
/// cell names both item and timeout, so that they are fetched at the same time. A search by timeout needs no item at
/// all. (Among a million keys in random order, std::unordered_map of libstdc++ takes 1.6 times as long for a move.)
/// Knuth, "The Art of Computer Programming", volume 3, section 6.4, algorithms L and R.
template <class Item>
class KeyedTable {
 public:
  struct Cell {
    Timeout timeout;
    std::unique_ptr<Item> item;  // null: the cell is free
    std::uint32_t hash = 0;
  };

  std::size_t size() const noexcept { return size_; }

  /// The cell with this hash that `is_it(cell)`, or null.
  template <class Predicate>
  Cell* find(std::uint32_t hash, Predicate is_it) const {
    if (cells_ == nullptr) return nullptr;
    for (std::uint32_t at = hash & mask_; cells_[at].item != nullptr; at = (at + 1) & mask_) {
      if (cells_[at].hash == hash && is_it(std::as_const(cells_[at]))) return &cells_[at];
    }
    return nullptr;
  }

  /// Makes sure that the next insert() finds a free cell. Never shrinks. Throws std::bad_alloc, then nothing has
  /// changed.
  void make_room() {
    const std::size_t cells = cells_ == nullptr ? 0 : std::size_t{mask_} + 1;
    // At most 5 of 8 cells are taken: a hit then needs two probes on average, and four if keys come in rows: see
    // mixed_hash().
    if ((size_ + 1) * 8 <= cells * 5) return;
    KeyedTable larger(cells == 0 ? kSmallest : cells * 2);
    for (std::size_t i = 0; i < cells; ++i) {
      if (cells_[i].item != nullptr) larger.insert(std::move(cells_[i]));
    }
    swap(larger);
  }

  /// Precondition: make_room() since the last insert().
  void insert(Cell&& cell) noexcept {
    std::uint32_t at = cell.hash & mask_;
    while (cells_[at].item != nullptr) at = (at + 1) & mask_;
    cells_[at] = std::move(cell);
    ++size_;
  }

  /// Takes a cell out. Those after it move up into the gap, so there are no tombstones.
  Cell erase(Cell* cell) noexcept {
    Cell taken = std::move(*cell);
    --size_;
    auto gap = static_cast<std::uint32_t>(cell - cells_.get());
    for (std::uint32_t at = (gap + 1) & mask_; cells_[at].item != nullptr; at = (at + 1) & mask_) {
      const std::uint32_t from_home = (at - cells_[at].hash) & mask_;
      if (from_home < ((at - gap) & mask_)) continue;  // its home is after the gap
      cells_[gap] = std::move(cells_[at]);
      gap = at;
    }
    return taken;
  }

  /// Calls f(cell) for each one that is taken.
  template <class F>
  void for_each(F f) {
    if (cells_ == nullptr) return;
    for (std::size_t i = 0; i <= mask_; ++i) {
      if (cells_[i].item != nullptr) f(cells_[i]);
    }
  }

  void swap(KeyedTable& other) noexcept {
    std::swap(cells_, other.cells_);
    std::swap(mask_, other.mask_);
    std::swap(size_, other.size_);
  }

  KeyedTable() noexcept = default;

 private:
  static constexpr std::size_t kSmallest = 8;

  explicit KeyedTable(std::size_t cells)
      : cells_(std::make_unique<Cell[]>(cells)), mask_(static_cast<std::uint32_t>(cells - 1)) {}

  std::unique_ptr<Cell[]> cells_;
  std::uint32_t mask_ = 0;  // the number of cells, a power of two, less one
  std::size_t size_ = 0;
};

}  // namespace hwt::detail
