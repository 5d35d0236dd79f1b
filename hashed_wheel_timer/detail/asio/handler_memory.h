// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <new>

namespace hwt::detail {

/// An allocator for a handler that Asio queues, with memory of the `Owner` for one such handler. Asio allocates a
/// queued handler with the handler's own allocator, and frees the memory before it calls or destroys the handler. So a
/// handler that keeps its owner alive can be queued even when operator new fails.
template <class T, class Owner>
class OwnersAllocator {
 public:
  using value_type = T;

  explicit OwnersAllocator(Owner& owner) noexcept : owner_(&owner) {}
  template <class Other>
  OwnersAllocator(const OwnersAllocator<Other, Owner>& other) noexcept  // NOLINT(google-explicit-constructor)
      : owner_(other.owner_) {}

  T* allocate(std::size_t count) {
    static_assert(alignof(T) <= alignof(void*));
    return static_cast<T*>(owner_->allocate(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept { owner_->deallocate(memory, count * sizeof(T)); }

  template <class Other>
  bool operator==(const OwnersAllocator<Other, Owner>& other) const noexcept {
    return owner_ == other.owner_;
  }

 private:
  template <class, class>
  friend class OwnersAllocator;

  Owner* owner_;
};

/// Memory for one queued handler at a time. If it is taken or too small, operator new is used. Any thread may use it.
class HandlerMemory {
 public:
  void* allocate(std::size_t size) {
    if (size <= bytes_.size() && !used_.exchange(true, std::memory_order_acquire)) return bytes_.data();
    return ::operator new(size);
  }
  void deallocate(void* pointer, std::size_t) noexcept {
    if (pointer != bytes_.data()) return ::operator delete(pointer);
    used_.store(false, std::memory_order_release);  // pairs with the acquire of allocate(): the bytes are handed over
  }

 private:
  alignas(void*) std::array<std::byte, 256> bytes_;
  std::atomic<bool> used_{false};
};

}  // namespace hwt::detail
