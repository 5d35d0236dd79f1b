#include "hashed_wheel_timer/internal/handover/entry_buffer.h"

#include <algorithm>
#include <new>
#include <utility>

namespace hwt::internal {

EntryBuffer::Array* EntryBuffer::new_array(std::size_t begin, std::size_t size) noexcept {
  void* const memory = ::operator new(sizeof(Array) + size * sizeof(NodeName), std::nothrow);
  return memory == nullptr ? nullptr : ::new (memory) Array{begin, begin + size, nullptr};
}

std::size_t EntryBuffer::extend(std::size_t most, std::size_t planned) noexcept {
  const std::size_t begin = limit_;
  if (last_ == nullptr || begin == last_->end) {
    Array*& next = last_ == nullptr ? first_ : last_->next;
    const std::size_t size = std::min(planned, kMaxArray);
    // Replaces an empty array that is too small, and the empty ones after it. Otherwise the chain would get another
    // small array each time that somewhat more entries stay alive than ever before.
    if (next == nullptr || next->end - next->begin < size) {
      Array* const made = new_array(begin, size);
      if (made != nullptr) free_chain(std::exchange(next, made));
      if (next == nullptr) return 0;
    }
    last_ = next;
  }
  limit_ = std::min(last_->end, begin + most);
  return limit_ - begin;
}

void EntryBuffer::trim(std::size_t planned) noexcept {
  if (last_ == nullptr) return;
  Array** beyond = &last_->next;
  while (*beyond != nullptr && (*beyond)->begin < limit_ + planned) beyond = &(*beyond)->next;
  free_chain(std::exchange(*beyond, nullptr));
}

/// Jumps over the gap if no kept entries are left, and frees the arrays before the oldest entry. Returns the position
/// of that entry. Precondition: there is an entry.
inline std::size_t EntryBuffer::go_to_oldest() noexcept {
  std::size_t head = head_.load(std::memory_order_relaxed);
  if (head == gap_) {
    gap_ = head += gap_size_.load(std::memory_order_relaxed);
    head_.store(head, std::memory_order_relaxed);
    gap_size_.store(0, std::memory_order_relaxed);
  }
  while (head >= first_->end) ::operator delete(std::exchange(first_, first_->next));
  return head;
}

/// Returns the array in which or at whose end this position is.
EntryBuffer::Array* EntryBuffer::array_with(std::size_t position) noexcept {
  Array* array = first_;
  while (array->end < position) array = array->next;
  return array;
}

NodeName EntryBuffer::oldest() noexcept {
  const std::size_t head = go_to_oldest();
  return *first_->at(head);
}

std::size_t EntryBuffer::take(NodeName* entries, std::size_t max) noexcept {
  const std::size_t tail = tail_.load(std::memory_order_acquire);
  std::size_t taken = 0;
  while (taken != max && head_.load(std::memory_order_relaxed) != tail) {
    const std::size_t head = go_to_oldest();
    const std::size_t end = std::min(head < gap_ ? gap_ : tail, first_->end);
    const std::size_t count = std::min(max - taken, end - head);
    const NodeName* const from = first_->at(head);
    for (std::size_t i = 0; i != count; ++i) entries[taken + i] = from[i];
    taken += count;
    head_.store(head + count, std::memory_order_relaxed);
    gap_ = std::max(gap_, head + count);
  }
  return taken;
}

/// Ends a sift, which has kept the entries in [head_, end). `last`: the array in which `end` is, or at whose end.
void EntryBuffer::end_sift(Array* last, std::size_t end) noexcept {
  last_ = last;
  // Positions begin at 0 again, because 32 bits would overflow in time.
  const std::size_t origin = first_->begin;
  for (Array* array = first_; array != nullptr; array = array->next) {
    array->begin -= origin;
    array->end -= origin;
  }
  limit_ = end - origin;
  tail_.store(limit_, std::memory_order_relaxed);
  gap_ = head_.load(std::memory_order_relaxed) - origin;
  head_.store(gap_, std::memory_order_relaxed);
  gap_size_.store(0, std::memory_order_relaxed);
  // Few are left. The producer may not need a large array again.
  if (limit_ > kFewest || first_->end <= 4 * kFewest) return;
  Array* const small = new_array(0, kFewest);
  if (small == nullptr) return;
  for (std::size_t i = gap_; i != limit_; ++i) small->entries()[i] = first_->entries()[i];
  free_chain(std::exchange(first_, small));
  last_ = small;
}

void EntryBuffer::free_chain(Array* first) noexcept {
  while (first != nullptr) ::operator delete(std::exchange(first, first->next));
}

}  // namespace hwt::internal
