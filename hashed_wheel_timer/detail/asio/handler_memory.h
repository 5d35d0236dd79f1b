// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace hwt::detail {

/// Memory for one queued handler of Asio at a time. Asio allocates a queued handler with the handler's own allocator.
/// With the allocator of this memory, a handler can be queued even when operator new fails. Any thread may use it.
class HandlerMemory {
 public:
  /// An allocator that uses the memory if it is free and large enough, and operator new otherwise.
  template <class T>
  struct Allocator {
    using value_type = T;

    explicit Allocator(std::shared_ptr<HandlerMemory> its_memory) noexcept : memory(std::move(its_memory)) {}
    template <class Other>
    Allocator(const Allocator<Other>& other) noexcept : memory(other.memory) {}  // NOLINT(google-explicit-constructor)

    T* allocate(std::size_t count) { return static_cast<T*>(memory->allocate(count * sizeof(T))); }
    void deallocate(T* pointer, std::size_t) noexcept { memory->deallocate(pointer); }

    friend bool operator==(const Allocator&, const Allocator&) = default;

    const std::shared_ptr<HandlerMemory> memory;  // const: a move must leave the allocator equal
  };

 private:
  void* allocate(std::size_t size) {
    if (size <= bytes_.size() && !used_.exchange(true, std::memory_order_acquire)) return bytes_.data();
    return ::operator new(size);
  }
  void deallocate(void* pointer) noexcept {
    if (pointer != bytes_.data()) return ::operator delete(pointer);
    used_.store(false, std::memory_order_release);  // pairs with the acquire of allocate(): the bytes are handed over
  }

  alignas(std::max_align_t) std::array<std::byte, 256> bytes_;
  std::atomic<bool> used_{false};
};

}  // namespace hwt::detail
