#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

namespace hwt::detail {

/// A Treiber stack whose elements carry their own link: `kNext` is a data member pointer, or a function that returns a
/// reference to the link. Any thread pushes. A thread takes the whole stack with one exchange and never pops a single
/// element, so there is no ABA problem, no lock, and nothing to reclaim.
///
/// Memory order: a push releases and a take acquires. The thread that takes an element sees it as the thread that
/// pushed it left it, and owns the link from then on. Pushes are read-modify-writes, so one acquire covers all of them.
template <class Element, auto kNext>
class IntrusiveStack {
 public:
  IntrusiveStack() = default;
  IntrusiveStack(const IntrusiveStack&) = delete;
  IntrusiveStack& operator=(const IntrusiveStack&) = delete;

  bool empty() const noexcept { return top_.load(std::memory_order_relaxed) == nullptr; }

  /// Returns the newest element without taking it; null: the stack is empty. For stacks that nobody takes from.
  Element* top() const noexcept { return top_.load(std::memory_order_acquire); }

  /// Pushes. Returns whether the stack was empty.
  bool push(Element& element) noexcept {
    Element* top = top_.load(std::memory_order_relaxed);
    do {
      next(element) = top;
    } while (!top_.compare_exchange_weak(top, &element, std::memory_order_release, std::memory_order_relaxed));
    return top == nullptr;
  }

  /// Pushes unless the stack is closed. Returns false if it is.
  bool push_unless_closed(Element& element) noexcept {
    Element* top = top_.load(std::memory_order_relaxed);
    do {
      if (top == closed_mark()) return false;
      next(element) = top;
    } while (!top_.compare_exchange_weak(top, &element, std::memory_order_release, std::memory_order_relaxed));
    return true;
  }

  /// Takes all elements. Returns the newest, linked to the others; null: there is none. An empty stack costs no
  /// read-modify-write. Precondition: the stack is not closed.
  Element* take_all() noexcept { return empty() ? nullptr : top_.exchange(nullptr, std::memory_order_acquire); }

  /// Takes one element. Returns null if there is none, or if another thread is between the exchanges of this function.
  Element* take_one() noexcept {
    Element* const first = take_all();
    if (first == nullptr) return nullptr;
    if (Element* const rest = std::exchange(next(*first), nullptr)) put_back(*rest);
    return first;
  }

  /// Pushes a chain that was taken. The stack is nearly always empty still. Otherwise the few elements that came
  /// meanwhile go on top, because the chain may be thousands of elements long and its end is not known.
  void put_back(Element& chain) noexcept {
    Element* first = &chain;
    for (Element* top = nullptr;
         !top_.compare_exchange_strong(top, first, std::memory_order_release, std::memory_order_relaxed);
         top = nullptr) {
      Element* const few = top_.exchange(nullptr, std::memory_order_acquire);
      if (few == nullptr) continue;
      Element* last = few;
      while (Element* const after = next(*last)) last = after;
      next(*last) = first;
      first = few;
    }
  }

  /// Takes all elements for good: no push_unless_closed() succeeds afterwards.
  Element* close() noexcept { return top_.exchange(closed_mark(), std::memory_order_acquire); }

 private:
  static Element*& next(Element& element) noexcept { return std::invoke(kNext, element); }
  // No element has this address.
  static Element* closed_mark() noexcept { return reinterpret_cast<Element*>(std::uintptr_t{1}); }

  std::atomic<Element*> top_{nullptr};
};

}  // namespace hwt::detail
