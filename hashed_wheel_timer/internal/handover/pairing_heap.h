#pragma once

#include <cstdint>
#include <utility>

namespace hwt::internal {

/// What an element of a PairingHeap carries.
template <class T>
struct HeapLinks {
  T* child = nullptr;
  T* next = nullptr;      // the next sibling
  T* previous = nullptr;  // the sibling before, or the parent; null: the root, or not in the heap
  std::int64_t key = 0;
  bool is_in = false;
};

/// A heap of elements that carry their own links, so it needs no memory: Fredman et al., "The pairing heap", 1986. The
/// least key is on top. insert() takes O(1); the others take O(log n), amortised. One thread.
template <class T, HeapLinks<T> T::* kLinks>
class PairingHeap {
 public:
  /// Null: it is empty.
  T* top() const noexcept { return root_; }

  /// Inserts an element, or changes its key.
  void insert(T& element, std::int64_t key) noexcept {
    if ((element.*kLinks).is_in) remove(element);
    element.*kLinks = {.key = key, .is_in = true};
    root_ = meld(root_, &element);
  }

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
  /// Both without siblings; each may be null.
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

  /// Takes the first of a chain of siblings.
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
