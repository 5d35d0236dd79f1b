// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/handover/entry_buffer.h"

#include <algorithm>
#include <new>
#include <utility>

#include "hashed_wheel_timer/internal/tuning.h"

namespace hwt::internal {

template <class Entry>
typename EntryBuffer<Entry>::Array* EntryBuffer<Entry>::new_array(Position begin, std::size_t size) noexcept {
  // NOLINTNEXTLINE(bugprone-sizeof-expression): an entry may be a pointer
  void* const memory = ::operator new(sizeof(Array) + size * sizeof(Entry), std::nothrow);
  return memory == nullptr ? nullptr : ::new (memory) Array{begin, begin + size, nullptr};
}

template <class Entry>
std::size_t EntryBuffer<Entry>::extend(std::size_t most, std::size_t planned) noexcept {
  const Position begin = limit_;
  if (last_ == nullptr || begin == last_->end) {
    Array*& next = last_ == nullptr ? first_ : last_->next;
    const std::size_t size = std::min(planned, Tuning::kMaxArray);
    // Replaces an empty array that is too small, and the empty ones after it. Otherwise the chain would get one more
    // small array whenever a few more entries stay alive than ever before.
    if (next == nullptr || next->size() < size) {
      Array* const made = new_array(begin, size);
      if (made != nullptr) free_chain(std::exchange(next, made));
      if (next == nullptr) return 0;
    }
    last_ = next;
  }
  limit_ = std::min<Position>(last_->end, begin + most);
  return static_cast<std::size_t>(limit_ - begin);
}

template <class Entry>
void EntryBuffer<Entry>::trim(std::size_t planned) noexcept {
  if (last_ == nullptr) return;
  Array** beyond = &last_->next;
  while (*beyond != nullptr && (*beyond)->begin < limit_ + planned) beyond = &(*beyond)->next;
  free_chain(std::exchange(*beyond, nullptr));
}

/// Jumps over the gap if no kept entries are left, and frees the arrays before the oldest entry. Returns the position
/// of that entry. Precondition: there is an entry.
template <class Entry>
inline typename EntryBuffer<Entry>::Position EntryBuffer<Entry>::go_to_oldest() noexcept {
  Position head = head_.load(std::memory_order_relaxed);
  if (head == gap_) {
    head += gap_size_.load(std::memory_order_relaxed);
    gap_ = head;
    head_.store(head, std::memory_order_relaxed);
    gap_size_.store(0, std::memory_order_relaxed);
  }
  while (head >= first_->end) ::operator delete(std::exchange(first_, first_->next));
  return head;
}

/// Returns the array in which or at whose end this position is.
template <class Entry>
typename EntryBuffer<Entry>::Array* EntryBuffer<Entry>::array_with(Position position) noexcept {
  Array* array = first_;
  while (array->end < position) array = array->next;
  return array;
}

template <class Entry>
Entry EntryBuffer<Entry>::oldest() noexcept {
  const Position head = go_to_oldest();
  return *first_->at(head);
}

template <class Entry>
std::size_t EntryBuffer<Entry>::take(Entry* entries, std::size_t max) noexcept {
  const Position tail = tail_.load(std::memory_order_acquire);
  std::size_t taken = 0;
  while (taken != max && head_.load(std::memory_order_relaxed) != tail) {
    const Position head = go_to_oldest();
    const Position end = std::min(head < gap_ ? gap_ : tail, first_->end);
    const std::size_t count = static_cast<std::size_t>(std::min<Position>(max - taken, end - head));
    const Entry* const from = first_->at(head);
    for (std::size_t i = 0; i != count; ++i) entries[taken + i] = from[i];
    taken += count;
    head_.store(head + count, std::memory_order_relaxed);
    gap_ = std::max(gap_, head + count);
  }
  return taken;
}

/// Ends a sift, which has kept the entries in [head_, end). `last`: the array that has `end`, or ends there.
template <class Entry>
void EntryBuffer<Entry>::end_sift(Array* last, Position end) noexcept {
  last_ = last;
  limit_ = end;
  tail_.store(end, std::memory_order_relaxed);
  gap_ = head_.load(std::memory_order_relaxed);
  gap_size_.store(0, std::memory_order_relaxed);
  // Few are left. The producer may not need a large array again.
  if (limit_ - first_->begin > Tuning::kFewest || first_->size() <= 4 * Tuning::kFewest) return;
  Array* const small = new_array(first_->begin, Tuning::kFewest);
  if (small == nullptr) return;
  for (Position i = gap_; i != limit_; ++i) *small->at(i) = *first_->at(i);
  free_chain(std::exchange(first_, small));
  last_ = small;
}

template <class Entry>
void EntryBuffer<Entry>::free_chain(Array* first) noexcept {
  while (first != nullptr) ::operator delete(std::exchange(first, first->next));
}

template class EntryBuffer<NodeName>;
template class EntryBuffer<Node*>;

}  // namespace hwt::internal
