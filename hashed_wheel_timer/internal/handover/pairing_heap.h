// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

namespace hwt::internal {

/// The links and the key that an element of a PairingHeap carries.
template <class T>
struct HeapLinks {
  T* child = nullptr;
  T* next = nullptr;      // the next sibling
  T* previous = nullptr;  // the sibling before, or the parent; null: the root. Stale after remove(), as the other links
  std::int64_t key = 0;
  bool is_in = false;
};

/// An intrusive pairing heap (Fredman et al., "The pairing heap", 1986), with the least key on top. It allocates
/// nothing. top() and the insert() of a new element take O(1). remove() and a change of key take O(log n), amortised.
/// Only one thread may use it at a time.
template <class T, HeapLinks<T> T::* kLinks>
class PairingHeap {
 public:
  /// Returns the element with the least key, or null if the heap is empty.
  T* top() const noexcept { return root_; }

  /// Inserts an element, or changes its key.
  void insert(T& element, std::int64_t key) noexcept {
    if ((element.*kLinks).is_in) remove(element);
    element.*kLinks = {.key = key, .is_in = true};
    root_ = meld(root_, &element);
  }

  /// Removes an element that is in the heap.
  void remove(T& element) noexcept {
    HeapLinks<T>& links = element.*kLinks;
    if (&element == root_) {
      root_ = nullptr;
    } else {
      HeapLinks<T>& before = links.previous->*kLinks;
      (before.child == &element ? before.child : before.next) = links.next;
      if (links.next != nullptr) (links.next->*kLinks).previous = links.previous;
    }
    root_ = meld(root_, meld_siblings(links.child));
    links.is_in = false;
  }

 private:
  /// Melds two heaps and returns the root of the result. The roots have no siblings. Each may be null.
  static T* meld(T* a, T* b) noexcept {
    if (a == nullptr) return b;
    if (b == nullptr) return a;
    if ((b->*kLinks).key < (a->*kLinks).key) std::swap(a, b);
    T*& child = (a->*kLinks).child;
    if (child != nullptr) (child->*kLinks).previous = b;
    (b->*kLinks).next = std::exchange(child, b);
    (b->*kLinks).previous = a;
    return a;
  }

  /// Melds the heaps of a chain of siblings, pair by pair, and returns the root of the result.
  static T* meld_siblings(T* first) noexcept {
    T* pairs = nullptr;  // linked by `next`, the last one first
    while (first != nullptr) {
      T* const a = cut(first);
      T* const pair = meld(a, cut(first));
      (pair->*kLinks).next = std::exchange(pairs, pair);
    }
    T* root = nullptr;
    while (pairs != nullptr) root = meld(root, cut(pairs));
    return root;
  }

  /// Removes the first of a chain of siblings and returns it, or null if the chain is empty.
  static T* cut(T*& first) noexcept {
    T* const element = first;
    if (element == nullptr) return nullptr;
    first = std::exchange((element->*kLinks).next, nullptr);
    (element->*kLinks).previous = nullptr;
    return element;
  }

  T* root_ = nullptr;
};

}  // namespace hwt::internal
