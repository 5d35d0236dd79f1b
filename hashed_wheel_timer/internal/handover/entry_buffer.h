#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "hashed_wheel_timer/internal/memory/slab.h"

namespace hwt::internal {

/// The youngest entries of one producer, oldest first, in a chain of arrays. Most timeouts are cancelled while their
/// entries are here. So it is cheap to append an entry, and to drop the dead ones in place.
///
/// The owner appends without a lock. All other changes need the lock of the place: the worker takes entries, and the
/// owner sifts. Positions count the entries along the chain. sift() goes back to the beginning of the first array.
class EntryBuffer {
 public:
  /// The fewest entries that are worth a walk, and the most of one array.
  static constexpr std::size_t kFewest = 256;
  static constexpr std::size_t kMaxArray = 65536;

  EntryBuffer() = default;
  EntryBuffer(const EntryBuffer&) = delete;
  EntryBuffer& operator=(const EntryBuffer&) = delete;
  ~EntryBuffer() { free_chain(first_); }

  /// Returns the number of entries. Exact for the owner. For the worker with the lock, it includes all entries that
  /// were appended before a fence pair. For any other thread, it is the number of some moment, and wrong during a sift.
  std::size_t size() const noexcept {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    return tail > head ? tail - head : 0;
  }

  // The owner.

  /// Appends an entry. Returns false if there is no room.
  bool append(NodeName entry) noexcept {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail == limit_) [[unlikely]]
      return false;
    *last_->at(tail) = entry;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  /// Makes room for some of the `planned` entries that come next, and returns for how many. Returns 0 without memory.
  /// Frees arrays that `planned` entries will not reach, and replaces one that is too small for them. Precondition:
  /// there is no room.
  std::size_t extend(std::size_t planned) noexcept;

  // The owner or the worker, with the lock. Precondition of oldest(): there is an entry.

  NodeName oldest() noexcept;
  /// Takes the oldest entries. Returns their number.
  std::size_t take(NodeName* entries, std::size_t max) noexcept;

  // The owner, with the lock.

  /// Removes the entries for which keep(entry) is false. The others keep their order. Afterwards there is no room.
  template <class Keep>
  void sift(Keep&& keep) noexcept;

 private:
  /// Its entries follow it in memory.
  struct Array {
    std::size_t begin;  // the position of its first entry
    std::size_t end;
    Array* next;

    NodeName* entries() noexcept { return reinterpret_cast<NodeName*>(this + 1); }
    NodeName* at(std::size_t position) noexcept { return entries() + (position - begin); }
  };

  void pass_exhausted(std::size_t head) noexcept;
  void free_if_large() noexcept;
  static void free_chain(Array* first) noexcept;

  // The owner's.
  std::size_t limit_ = 0;  // append() stops at this position
  Array* last_ = nullptr;  // has this position. The arrays after it are empty
  // Written by the owner. release and acquire: the worker sees the entries and the links up to the last of them.
  std::atomic<std::size_t> tail_{0};
  // Guarded by the lock, but the number is also read without it. The owner stores the first link before the first
  // entry.
  std::atomic<std::size_t> head_{0};
  Array* first_ = nullptr;
};

template <class Keep>
void EntryBuffer::sift(Keep&& keep) noexcept {
  if (first_ == nullptr) return;
  const std::size_t tail = tail_.load(std::memory_order_relaxed);
  std::size_t head = head_.load(std::memory_order_relaxed);
  Array* to = first_;
  NodeName* write = to->entries();
  NodeName* write_end = to->at(to->end);
  for (Array* from = first_; head != tail; from = from->next) {
    const std::size_t end = std::min(from->end, tail);
    NodeName* const read_end = from->at(end);
    for (NodeName* read = from->at(head); read != read_end; ++read) {
      if (!keep(*read)) continue;
      if (write == write_end) {
        to = to->next;
        write = to->entries();
        write_end = to->at(to->end);
      }
      *write++ = *read;
    }
    head = end;
  }
  limit_ = to->begin + static_cast<std::size_t>(write - to->entries());
  last_ = to;
  head_.store(first_->begin, std::memory_order_relaxed);
  tail_.store(limit_, std::memory_order_relaxed);
  if (limit_ == first_->begin) free_if_large();
}

}  // namespace hwt::internal
