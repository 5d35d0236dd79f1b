// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "hashed_wheel_timer/detail/keyed/page.h"

namespace hwt::detail {

/// The hash table of one shard of a KeyedTimer. Takes no locks, and calls no user code except in the caller's
/// predicate.
///
/// It consists of pages, which grow one by one, so that no insertion takes long. `Used`: how many of the highest bits
/// of the hash chose the shard, and so are equal in all cells. The bits after them choose the page.
template <class Cell, int Used>
class KeyedTable {
 public:
  KeyedTable() noexcept = default;
  KeyedTable(const KeyedTable&) = delete;
  KeyedTable& operator=(const KeyedTable&) = delete;

  std::size_t size() const noexcept {
    std::size_t sum = 0;
    for (const Page& page : pages_) sum += page.size();
    return sum;
  }

  /// Returns the cell with this hash for which is_it(cell) is true, or null.
  template <class Predicate>
  Cell* find(std::uint32_t hash, Predicate is_it) const {
    return pages_[number_of(hash)].find(hash, is_it);
  }

  /// Makes sure that the next insert() of this hash finds a free cell. Throws std::bad_alloc; then no cell has changed.
  void make_room(std::uint32_t hash) { pages_[number_of(hash)].make_room(); }

  /// Inserts a cell. Precondition: make_room() was called for this hash since the last insert().
  void insert(Cell&& cell) noexcept { pages_[number_of(cell.hash)].insert(std::move(cell)); }

  Cell erase(Cell* cell) noexcept { return pages_[number_of(cell->hash)].erase(cell); }

  /// Calls f(cell) for each taken cell.
  template <class F>
  void for_each(F f) {
    for (Page& page : pages_) page.for_each(f);
  }

  void swap(KeyedTable& other) noexcept { pages_.swap(other.pages_); }

 private:
  using Page = KeyedPage<Cell>;

  // 2 pages in each of 32 shards: with a million keys, the slowest insertion moves 10,240 cells in half a millisecond.
  // More pages grow at more different times, so that they need more memory for few keys.
  static constexpr int kPageBits = 1;

  static std::size_t number_of(std::uint32_t hash) noexcept { return hash << Used >> (32 - kPageBits); }

  std::array<Page, std::size_t{1} << kPageBits> pages_;
};

}  // namespace hwt::detail
