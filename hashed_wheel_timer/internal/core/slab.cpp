#include "hashed_wheel_timer/internal/core/slab.h"

#include <utility>

namespace hwt::internal {

void RunStack::push(Page& run) noexcept {
  run.next = top_.load(std::memory_order_relaxed);
  while (!top_.compare_exchange_weak(run.next, &run, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

Page* RunStack::take_all() noexcept {
  if (top_.load(std::memory_order_relaxed) == nullptr) return nullptr;
  return top_.exchange(nullptr, std::memory_order_acquire);
}

Page* RunStack::take() noexcept {
  Page* const run = take_all();
  if (run != nullptr) {
    if (Page* const rest = std::exchange(run->next, nullptr)) put_back(*rest);
  }
  return run;
}

// As BatchStack::put_back().
void RunStack::put_back(Page& runs) noexcept {
  Page* first = &runs;
  for (Page* top = nullptr;
       !top_.compare_exchange_strong(top, first, std::memory_order_release, std::memory_order_relaxed); top = nullptr) {
    Page* const few = top_.exchange(nullptr, std::memory_order_acquire);
    if (few == nullptr) continue;
    Page* last = few;
    while (last->next != nullptr) last = last->next;
    last->next = first;
    first = few;
  }
}

}  // namespace hwt::internal
