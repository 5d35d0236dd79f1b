#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/detail/keyed/page.h"

namespace hwt::detail {

/// The cells of a shard of a KeyedTimer, by hash, in pages. No locks, no user code but in the caller's predicate.
///
/// It grows a page at a time, so that no insertion takes long, and nothing is kept twice. A full page is split in two
/// by the next bit of the hash. pages_ has the page for each beginning of a hash. Extendible hashing: Fagin and others,
/// ACM Transactions on Database Systems 4 (1979). `Used`: how many bits of the hash, from the highest, are the same for
/// all cells here.
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

  /// The cell with this hash that `is_it(cell)`, or null.
  template <class Predicate>
  Cell* find(std::uint32_t hash, Predicate is_it) const {
    if (pages_.empty()) return nullptr;
    return pages_[beginning(hash, depth_)].find(hash, is_it);
  }

  /// Makes sure that the next insert() of this hash finds a free cell. Never shrinks. Throws std::bad_alloc, then
  /// nothing that shows has changed.
  void make_room(std::uint32_t hash) {
    if (pages_.empty() || page_of(hash).full()) grow(hash);
  }

  /// Precondition: make_room() for this hash since the last insert().
  void insert(Cell&& cell) noexcept {
    ++size_;
    Page& page = page_of(cell.hash);
    page.insert(std::move(cell));
  }

  Cell erase(Cell* cell) noexcept {
    --size_;
    return page_of(cell->hash).erase(cell);
  }

  /// Calls f(cell) for each one that is taken.
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

  static constexpr int kSmallest = 3;
  static constexpr int kLargest = 10;  // a split then takes some 20 us
  static constexpr std::size_t kWorthAPage = 64;

  /// The first `depth` bits of the hash, of those that differ here.
  static std::size_t beginning(std::uint32_t hash, int depth) noexcept {
    return static_cast<std::size_t>(std::uint64_t{hash << Used} >> (32 - depth));
  }
  /// How many places of pages_ a page has. To change it is to change the first.
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
      // Of keys whose hashes are all alike, splitting would part none: then pages grow, and pages_ does not.
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

  /// Puts `page` in all places of hashes that begin as this one does.
  void replace(std::uint32_t hash, const Page& page) noexcept {
    const std::size_t count = places(page.depth());
    const std::size_t first = beginning(hash, page.depth()) * count;
    for (std::size_t i = first; i < first + count; ++i) pages_[i] = page;
  }

  std::vector<Page> pages_;  // 2^depth_ of them; a page of fewer bits stands in several places
  int depth_ = 0;
  std::size_t size_ = 0;
};

}  // namespace hwt::detail
