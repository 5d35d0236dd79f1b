// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/internal/memory/slab.h"
#include "hashed_wheel_timer/internal/tuning.h"

namespace hwt::internal {

/// The youngest entries of one producer, oldest first, in a chain of arrays. Most timeouts are cancelled while their
/// entries are here. So it is cheap to append an entry, and to drop the dead ones in place. Also the producer's recheck
/// requests, which are never sifted.
///
/// The owner appends, makes room, and trims, without a lock. All other changes need the lock of the place if the owner
/// sifts: the worker takes entries, and the owner sifts, in steps. A position is the number of entries before an entry,
/// since the first one. Between two steps of a sift there are three ranges of positions, and the room:
///
///   [head_, gap_)              entries that the sift has kept
///   [gap_, gap_ + gap_size_)   the gap, without entries
///   [gap_ + gap_size_, tail_)  entries that the sift has not looked at yet
///   [tail_, limit_)            room for append()
///
/// When the worker has taken all kept entries, it jumps over the gap. Outside a sift the first two ranges are empty.
template <class Entry>
class EntryBuffer {
 public:
  EntryBuffer() = default;
  EntryBuffer(const EntryBuffer&) = delete;
  EntryBuffer& operator=(const EntryBuffer&) = delete;
  ~EntryBuffer() { free_chain(first_); }

  /// Returns the number of entries. Exact for the owner with the lock. The worker with the lock may miss new entries.
  /// It sees each one after which the owner has passed AsymmetricFence::light() before the worker passed heavy().
  /// Without the lock the number is about right, but it may be far off for a moment while the owner sifts, or while the
  /// worker jumps over the gap.
  std::size_t size() const noexcept {
    const Position gone = head_.load(std::memory_order_relaxed) + gap_size_.load(std::memory_order_relaxed);
    const Position tail = tail_.load(std::memory_order_relaxed);
    return tail > gone ? static_cast<std::size_t>(tail - gone) : 0;
  }

  // The owner.

  /// Appends an entry. Returns false if there is no room.
  bool append(Entry entry) noexcept {
    const Position tail = tail_.load(std::memory_order_relaxed);
    if (tail == limit_) [[unlikely]]
      return false;
    *last_->at(tail) = entry;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  /// Makes room for at most `most` entries, and returns for how many. Returns 0 without memory. `planned`: how many the
  /// owner appends until the next sift ends. A new array has space for these, but at most for Tuning::kMaxArray. If the
  /// next empty array is smaller, a new one replaces it and those after it, if there is memory. Preconditions: there is
  /// no room, and `planned` is at least `most`.
  std::size_t extend(std::size_t most, std::size_t planned) noexcept;
  /// Makes sure that the next append() succeeds. Returns false without memory.
  bool reserve() noexcept {
    return tail_.load(std::memory_order_relaxed) != limit_ || extend(Tuning::kFewest, Tuning::kFewest) != 0;
  }
  /// Frees the empty arrays that the owner will not need, if it fills the room and then appends `planned` entries.
  void trim(std::size_t planned) noexcept;

  // The owner or the worker, with the lock; the worker alone if the owner never sifts. Precondition of oldest(): there
  // is an entry.

  Entry oldest() noexcept;
  /// Takes the oldest entries. Returns their number.
  std::size_t take(Entry* entries, std::size_t max) noexcept;

  // The owner, with the lock.

  /// Makes one step of a sift: looks at the next entries, at most so many, and removes those for which keep(entry) is
  /// false. The others keep their order. Returns whether it has come to the youngest entry. Then there is no room, and
  /// the next step begins at the oldest.
  template <class Keep>
  bool sift(std::size_t most, Keep&& keep) noexcept;

 private:
  using Position = std::uint64_t;  // never wraps

  /// Its entries follow it in memory.
  struct Array {
    Position begin;  // the position of its first entry
    Position end;
    Array* next;

    std::size_t size() const noexcept { return static_cast<std::size_t>(end - begin); }
    Entry* at(Position position) noexcept {
      return reinterpret_cast<Entry*>(this + 1) + static_cast<std::size_t>(position - begin);
    }
  };

  Position go_to_oldest() noexcept;
  Array* array_with(Position position) noexcept;
  void end_sift(Array* last, Position end) noexcept;
  static Array* new_array(Position begin, std::size_t size) noexcept;
  static void free_chain(Array* first) noexcept;

  // The owner's.
  Position limit_ = 0;     // append() stops at this position
  Array* last_ = nullptr;  // limit_ is in it, or at its end. The arrays after it are empty
  // Written by the owner. release and acquire: the worker sees the entries and the links up to the last of them.
  std::atomic<Position> tail_{0};
  // Guarded by the lock, with two exceptions. size() also reads head_ and gap_size_ without it. The owner sets first_
  // without it once, before the first entry, and tail_ publishes that.
  std::atomic<Position> head_{0};
  std::atomic<Position> gap_size_{0};
  Position gap_ = 0;  // where the kept entries end; head_ if there are none
  Array* first_ = nullptr;
};

template <class Entry>
template <class Keep>
bool EntryBuffer<Entry>::sift(std::size_t most, Keep&& keep) noexcept {
  if (first_ == nullptr) return true;
  const Position tail = tail_.load(std::memory_order_relaxed);
  Position read = gap_ + gap_size_.load(std::memory_order_relaxed);
  const Position end = std::min<Position>(read + most, tail);
  if (gap_ == head_.load(std::memory_order_relaxed)) {  // uses the room before the oldest entry
    gap_ = first_->begin;
    head_.store(gap_, std::memory_order_relaxed);
  }
  Array* to = array_with(gap_);
  Entry* write = to->at(gap_);
  Entry* write_end = to->at(to->end);
  for (Array* from = array_with(read); read != end; from = from->next) {
    const Position read_to = std::min(from->end, end);
    Entry* const entries_end = from->at(read_to);
    for (Entry* entry = from->at(read); entry != entries_end; ++entry) {
      if (!keep(*entry)) continue;
      if (write == write_end) {
        to = to->next;
        write = to->at(to->begin);
        write_end = to->at(to->end);
      }
      *write++ = *entry;
    }
    read = read_to;
  }
  gap_ = to->begin + static_cast<std::size_t>(write - to->at(to->begin));
  gap_size_.store(end - gap_, std::memory_order_relaxed);
  if (end != tail) return false;
  end_sift(to, gap_);
  return true;
}

extern template class EntryBuffer<NodeName>;
extern template class EntryBuffer<Node*>;

}  // namespace hwt::internal
