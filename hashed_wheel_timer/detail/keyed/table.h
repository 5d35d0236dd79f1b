// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

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

/// The hash table of one shard of a KeyedTimer, divided into pages. Takes no locks, and calls no user code except in
/// the caller's predicate.
///
/// It grows one page at a time, so that no insertion takes long and no second copy of the table is needed. It never
/// shrinks. A full page is split in two by the next bit of the hash. pages_ maps the first bits of a hash to its page.
/// This is extendible hashing: Fagin and others, ACM Transactions on Database Systems 4 (1979). `Used`: how many of the
/// highest bits of the hash chose the shard, and so are equal in all cells.
template <class Cell, int Used>
class KeyedTable {
 public:
  KeyedTable() noexcept = default;
  KeyedTable(const KeyedTable&) = delete;
  KeyedTable& operator=(const KeyedTable&) = delete;
  ~KeyedTable() {
    for_each_page([](Page& page) { page.free(); });
  }

  std::size_t size() const noexcept { return size_; }

  /// Returns the cell with this hash for which is_it(cell) is true, or null.
  template <class Predicate>
  Cell* find(std::uint32_t hash, Predicate is_it) const {
    if (pages_.empty()) return nullptr;
    return pages_[beginning(hash, depth_)].find(hash, is_it);
  }

  /// Makes sure that the next insert() of this hash finds a free cell. Throws std::bad_alloc; then no cell has changed.
  void make_room(std::uint32_t hash) {
    if (pages_.empty() || page_of(hash).full()) grow(hash);
  }

  /// Inserts a cell. Precondition: make_room() was called for this hash since the last insert().
  void insert(Cell&& cell) noexcept {
    ++size_;
    Page& page = page_of(cell.hash);
    page.insert(std::move(cell));
  }

  Cell erase(Cell* cell) noexcept {
    --size_;
    return page_of(cell->hash).erase(cell);
  }

  /// Calls f(cell) for each taken cell.
  template <class F>
  void for_each(F f) {
    for_each_page([&f](Page& page) { page.for_each(f); });
  }

  void swap(KeyedTable& other) noexcept {
    pages_.swap(other.pages_);
    std::swap(depth_, other.depth_);
    std::swap(size_, other.size_);
  }

 private:
  using Page = KeyedPage<Cell>;

  // A page has 2^kSmallest to 2^kLargest cells, or more if many hashes are equal.
  static constexpr int kSmallest = 3;
  static constexpr int kLargest = 10;  // a split then takes some 20 us
  // The fewest cells for each element of pages_ that a split may leave.
  static constexpr std::size_t kWorthAPage = 64;

  /// Returns the first `depth` bits of the hash after the `Used` ones. In 64 bits, because a depth of 0 shifts by 32.
  static std::size_t beginning(std::uint32_t hash, int depth) noexcept {
    return static_cast<std::size_t>(std::uint64_t{hash << Used} >> (32 - depth));
  }
  /// Returns how many elements of pages_ are copies of a page of this depth. All copies refer to the same cells, so a
  /// search may use any. The number of cells in use is kept up to date only in the first copy.
  std::size_t places(int depth) const noexcept { return std::size_t{1} << (depth_ - depth); }
  Page& page_of(std::uint32_t hash) noexcept {
    const std::size_t any = beginning(hash, depth_);
    return pages_[any & ~(places(pages_[any].depth()) - 1)];
  }

  template <class F>
  void for_each_page(F f) {
    for (std::size_t i = 0; i < pages_.size(); i += places(pages_[i].depth())) f(pages_[i]);
  }

  void grow(std::uint32_t hash) {
    if (pages_.empty()) {
      pages_.reserve(1);
      pages_.emplace_back(Page::allocate(kSmallest), kSmallest, 0);
    }
    while (page_of(hash).full()) {
      // A split does not separate equal hashes. So splits end when pages_ would become too large for the number of
      // cells, and the page grows instead.
      const Page& page = page_of(hash);
      const bool splits = page.bits() >= kLargest && kWorthAPage << (page.depth() + 1) <= size_;
      splits ? split(hash) : enlarge(hash);
    }
  }

  void enlarge(std::uint32_t hash) {
    Page old = page_of(hash);
    Page larger(Page::allocate(old.bits() + 1), old.bits() + 1, old.depth());
    old.for_each([&larger](Cell& cell) { larger.insert(std::move(cell)); });
    old.free();
    replace(hash, larger);
  }

  void split(std::uint32_t hash) {
    Page old = page_of(hash);
    const int depth = old.depth() + 1;
    if (depth > depth_) {
      std::vector<Page> twice;
      twice.reserve(pages_.size() * 2);
      for (const Page& page : pages_) twice.insert(twice.end(), 2, page);
      pages_.swap(twice);
      depth_ = depth;
    }
    typename Page::Cells cells[] = {Page::allocate(old.bits()), Page::allocate(old.bits())};
    Page halves[] = {Page(std::move(cells[0]), old.bits(), depth), Page(std::move(cells[1]), old.bits(), depth)};
    old.for_each([&](Cell& cell) { halves[beginning(cell.hash, depth) & 1].insert(std::move(cell)); });
    old.free();
    const std::uint32_t bit = std::uint32_t{1} << (32 - Used - depth);
    replace(hash & ~bit, halves[0]);
    replace(hash | bit, halves[1]);
  }

  /// Stores `page` in all elements of pages_ for hashes that begin with the same page.depth() bits as `hash`.
  void replace(std::uint32_t hash, const Page& page) noexcept {
    const std::size_t count = places(page.depth());
    const std::size_t first = beginning(hash, page.depth()) * count;
    for (std::size_t i = first; i < first + count; ++i) pages_[i] = page;
  }

  std::vector<Page> pages_;  // 2^depth_ of them, at first none; a page of a lower depth stands in several places
  int depth_ = 0;
  std::size_t size_ = 0;
};

}  // namespace hwt::detail
