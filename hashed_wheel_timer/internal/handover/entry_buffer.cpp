#include "hashed_wheel_timer/internal/handover/entry_buffer.h"

#include <algorithm>
#include <new>
#include <utility>

namespace hwt::internal {

std::size_t EntryBuffer::extend(std::size_t planned) noexcept {
  const std::size_t begin = limit_;
  const std::size_t end = begin + planned;
  if (last_ == nullptr || begin == last_->end) {
    Array*& next = last_ == nullptr ? first_ : last_->next;
    const std::size_t size = std::min(planned, kMaxArray);
    // Replaces one that is too small. Otherwise the chain would get another small array each time that somewhat more
    // entries stay alive than ever before.
    if (next == nullptr || next->end - next->begin < size) {
      void* const memory = ::operator new(sizeof(Array) + size * sizeof(NodeName), std::nothrow);
      if (memory != nullptr) free_chain(std::exchange(next, ::new (memory) Array{begin, begin + size, nullptr}));
      if (next == nullptr) return 0;
    }
    last_ = next;
  }
  Array** beyond = &last_->next;
  while (*beyond != nullptr && (*beyond)->begin < end) beyond = &(*beyond)->next;
  free_chain(std::exchange(*beyond, nullptr));
  limit_ = std::min(last_->end, end);
  return limit_ - begin;
}

/// Frees the first array if its entries have been taken. Precondition: there is an entry at `head`.
inline void EntryBuffer::pass_exhausted(std::size_t head) noexcept {
  if (head == first_->end) ::operator delete(std::exchange(first_, first_->next));
}

NodeName EntryBuffer::oldest() noexcept {
  const std::size_t head = head_.load(std::memory_order_relaxed);
  pass_exhausted(head);
  return *first_->at(head);
}

std::size_t EntryBuffer::take(NodeName* entries, std::size_t max) noexcept {
  const std::size_t tail = tail_.load(std::memory_order_acquire);
  std::size_t head = head_.load(std::memory_order_relaxed);
  std::size_t taken = 0;
  while (taken != max && head != tail) {
    pass_exhausted(head);
    const NodeName* const from = first_->at(head);
    const std::size_t count = std::min(max - taken, std::min(tail, first_->end) - head);
    for (std::size_t i = 0; i != count; ++i) entries[taken + i] = from[i];
    taken += count;
    head += count;
  }
  head_.store(head, std::memory_order_relaxed);
  return taken;
}

/// Nothing is left. Keeps only an array of the usual size, because the producer may not need so many again.
void EntryBuffer::free_if_large() noexcept {
  if (first_->end - first_->begin <= kFewest) return;
  free_chain(std::exchange(first_, nullptr));
  last_ = nullptr;
}

void EntryBuffer::free_chain(Array* first) noexcept {
  while (first != nullptr) ::operator delete(std::exchange(first, first->next));
}

}  // namespace hwt::internal
