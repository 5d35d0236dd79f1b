// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace hwt::detail {

/// A Treiber stack whose elements carry their own link. `kNext` is a pointer to a data member, or a function that
/// returns the link or an object that is used like it. Any thread may push. A thread always takes the whole stack with
/// one exchange: take_one() puts the rest back. So there is no ABA problem, no lock, and nothing to reclaim.
///
/// Memory order: a push releases and a take acquires, so the taker sees each element as its pusher left it. Pushes are
/// read-modify-writes, so one acquire covers all of them. The taker owns the links from then on.
template <class Element, auto kNext>
class IntrusiveStack {
 public:
  IntrusiveStack() = default;
  IntrusiveStack(const IntrusiveStack&) = delete;
  IntrusiveStack& operator=(const IntrusiveStack&) = delete;

  bool empty() const noexcept { return top_.load(std::memory_order_relaxed) == nullptr; }

  /// Returns the newest element without taking it, or null if the stack is empty. Only for stacks from which no thread
  /// takes elements.
  Element* top() const noexcept { return top_.load(std::memory_order_acquire); }

  /// Pushes an element. Returns whether the stack was empty.
  bool push(Element& element) noexcept {
    Element* top = top_.load(std::memory_order_relaxed);
    do {
      next(element) = top;
    } while (!top_.compare_exchange_weak(top, &element, std::memory_order_release, std::memory_order_relaxed));
    return top == nullptr;
  }

  /// Pushes an element unless the stack is closed. Returns whether it did.
  bool push_unless_closed(Element& element) noexcept {
    Element* top = top_.load(std::memory_order_relaxed);
    do {
      if (top == closed_mark()) return false;
      next(element) = top;
    } while (!top_.compare_exchange_weak(top, &element, std::memory_order_release, std::memory_order_relaxed));
    return true;
  }

  /// Takes all elements. Returns the newest, which is linked to the others, or null if there is none. An empty stack
  /// costs no read-modify-write. Precondition: the stack is not closed.
  Element* take_all() noexcept { return empty() ? nullptr : top_.exchange(nullptr, std::memory_order_acquire); }

  /// Takes the newest element. Returns null if there is none, or if another thread is in this function and holds them
  /// all.
  Element* take_one() noexcept {
    Element* const first = take_all();
    if (first == nullptr) return nullptr;
    if (Element* const rest = next(*first)) {
      next(*first) = nullptr;
      put_back(*rest);
    }
    return first;
  }

  /// Pushes a chain that was taken. Nearly always the stack is still empty. Otherwise takes the few elements that were
  /// pushed meanwhile and puts them on top of the chain, because the chain may be long and its end is not known.
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

  /// Closes the stack and takes all elements. No push_unless_closed() succeeds afterwards. Returns the newest, which is
  /// linked to the others, or null if there is none.
  Element* close() noexcept { return top_.exchange(closed_mark(), std::memory_order_acquire); }

 private:
  static decltype(auto) next(Element& element) noexcept { return std::invoke(kNext, element); }
  // No element has this address.
  static Element* closed_mark() noexcept { return reinterpret_cast<Element*>(std::uintptr_t{1}); }

  std::atomic<Element*> top_{nullptr};
};

}  // namespace hwt::detail
