#pragma once

// Replaces all versions of the global operators new and delete in the executable that includes this header. They count
// the bytes in use and fail on demand. Only one source file of an executable may include it.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <new>
#include <utility>

#include "hashed_wheel_timer/internal/platform/sanitizers.h"

namespace hwt::test {

/// The bytes that were allocated by new and not yet deleted.
inline std::atomic<std::int64_t> bytes_in_use{0};

/// By how much bytes_in_use has grown since this was constructed, and the most that look() has seen.
class Growth {
 public:
  void look() {
    const std::int64_t grown = now();
    for (std::int64_t most = most_; grown > most && !most_.compare_exchange_weak(most, grown);) {
    }
  }
  std::int64_t most() {
    look();
    return most_;
  }
  std::int64_t now() const { return bytes_in_use - before_; }

 private:
  const std::int64_t before_ = bytes_in_use;
  std::atomic<std::int64_t> most_{0};
};

/// Makes allocations fail during its lifetime: the first `pass` succeed, the next `fail` fail, and the rest succeed.
class Shortage {
 public:
  enum class Of { ThisThread, OtherThreads };
  static constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max() / 2;

  Shortage(std::int64_t pass, std::int64_t fail, Of whom = Of::ThisThread) : whom_(whom) {
    if (whom == Of::ThisThread) {
      here = {pass, fail, 0};
    } else {
      exempt = true;
      seen_elsewhere = 0;
      failed_elsewhere = 0;
      first_elsewhere = pass;
      end_elsewhere = pass + fail;
    }
  }
  ~Shortage() { end(); }
  Shortage(const Shortage&) = delete;
  Shortage& operator=(const Shortage&) = delete;

  void end() {
    if (whom_ == Of::ThisThread) {
      here.fail = 0;
    } else {
      end_elsewhere = 0;
      exempt = false;
    }
  }
  /// Returns the number of allocations that have failed so far.
  std::int64_t failed() const { return whom_ == Of::ThisThread ? here.failed : failed_elsewhere.load(); }

  /// Returns the number of this thread's allocations that its latest shortage has failed.
  static std::int64_t failed_here() noexcept { return here.failed; }
  /// Returns whether this allocation must fail. Called by operator new.
  static bool strikes() noexcept {
    if (here.fail > 0 && here.pass-- <= 0) {
      --here.fail;
      ++here.failed;
      return true;
    }
    if (end_elsewhere.load(std::memory_order_relaxed) == 0 || exempt) return false;
    const std::int64_t number = seen_elsewhere.fetch_add(1);
    if (number < first_elsewhere || number >= end_elsewhere) return false;
    ++failed_elsewhere;
    return true;
  }

 private:
  struct Here {
    std::int64_t pass;
    std::int64_t fail;
    std::int64_t failed;
  };

  const Of whom_;

  static inline constinit thread_local Here here{0, 0, 0};
  static inline constinit thread_local bool exempt = false;
  static inline std::atomic<std::int64_t> seen_elsewhere{0};
  static inline std::atomic<std::int64_t> first_elsewhere{0};
  static inline std::atomic<std::int64_t> end_elsewhere{0};
  static inline std::atomic<std::int64_t> failed_elsewhere{0};
};

/// The result of with_failing().
struct Outcome {
  bool struck = false;     // an allocation was made to fail
  bool bad_alloc = false;  // and f threw std::bad_alloc
};

/// Runs f while `count` allocations of this thread fail, from the n-th on.
template <class F>
Outcome with_failing(std::int64_t n, F&& f, std::int64_t count = 1) {
  Outcome outcome;
  Shortage shortage(n, count);
  try {
    f();
  } catch (const std::bad_alloc&) {
    outcome.bad_alloc = true;
  }
  shortage.end();
  outcome.struck = shortage.failed() != 0;
  return outcome;
}

/// Runs f while this thread has no memory. Returns what f returns.
template <class F>
decltype(auto) without_memory(F&& f) {
  const Shortage shortage(0, Shortage::kAll);
  return f();
}

/// During its lifetime, calls f(size) at the beginning of each allocation of this thread, except for those inside f.
class AllocationObserver {
 public:
  explicit AllocationObserver(std::function<void(std::size_t)> f) : f_(std::move(f)) { active = this; }
  ~AllocationObserver() { active = nullptr; }
  AllocationObserver(const AllocationObserver&) = delete;
  AllocationObserver& operator=(const AllocationObserver&) = delete;

  /// Called by operator new.
  static void tell(std::size_t size) {
    if (active == nullptr) return;
    AllocationObserver* const observer = std::exchange(active, nullptr);
    observer->f_(size);
    active = observer;
  }

 private:
  const std::function<void(std::size_t)> f_;

  static inline constinit thread_local AllocationObserver* active = nullptr;
};

namespace allocation_hook {

/// Precedes each block.
struct Header {
  void* base;
  std::size_t size;
};

inline void* allocate(std::size_t size, std::size_t align) noexcept {
  AllocationObserver::tell(size);
  if (Shortage::strikes()) return nullptr;
  // The pages that a large alignment leaves unused are never touched, so they cost no memory.
  void* const base = std::malloc(size + sizeof(Header) + align);
  if (base == nullptr) return nullptr;
  const auto first = reinterpret_cast<std::uintptr_t>(base) + sizeof(Header);
  const std::uintptr_t block = (first + align - 1) / align * align;
  *reinterpret_cast<Header*>(block - sizeof(Header)) = {base, size};
  bytes_in_use.fetch_add(static_cast<std::int64_t>(size), std::memory_order_relaxed);
  return reinterpret_cast<void*>(block);
}

inline void* allocate_or_throw(std::size_t size, std::size_t align) {
  void* const block = allocate(size, align);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

inline void release(void* block) noexcept {
  if (block == nullptr) return;
  const Header header = *reinterpret_cast<Header*>(reinterpret_cast<std::uintptr_t>(block) - sizeof(Header));
  bytes_in_use.fetch_sub(static_cast<std::int64_t>(header.size), std::memory_order_relaxed);
  // So that a use of freed memory shows. Only the beginning, because the rest may not be in memory.
  const std::size_t shown = std::min<std::size_t>(header.size, 64);
  internal::unpoison_memory(block, shown);  // clang poisons the number of elements before an array
  std::memset(block, 0xDD, shown);
  asm volatile("" : : "r"(block) : "memory");  // compilers drop a memset before free()
  std::free(header.base);
}

inline constexpr std::size_t kAlign = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
inline std::size_t value_of(std::align_val_t align) noexcept { return static_cast<std::size_t>(align); }

}  // namespace allocation_hook
}  // namespace hwt::test

void* operator new(std::size_t size) {
  return hwt::test::allocation_hook::allocate_or_throw(size, hwt::test::allocation_hook::kAlign);
}
void* operator new[](std::size_t size) {
  return hwt::test::allocation_hook::allocate_or_throw(size, hwt::test::allocation_hook::kAlign);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return hwt::test::allocation_hook::allocate(size, hwt::test::allocation_hook::kAlign);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return hwt::test::allocation_hook::allocate(size, hwt::test::allocation_hook::kAlign);
}
void* operator new(std::size_t size, std::align_val_t align) {
  return hwt::test::allocation_hook::allocate_or_throw(size, hwt::test::allocation_hook::value_of(align));
}
void* operator new[](std::size_t size, std::align_val_t align) {
  return hwt::test::allocation_hook::allocate_or_throw(size, hwt::test::allocation_hook::value_of(align));
}
void* operator new(std::size_t size, std::align_val_t align, const std::nothrow_t&) noexcept {
  return hwt::test::allocation_hook::allocate(size, hwt::test::allocation_hook::value_of(align));
}
void* operator new[](std::size_t size, std::align_val_t align, const std::nothrow_t&) noexcept {
  return hwt::test::allocation_hook::allocate(size, hwt::test::allocation_hook::value_of(align));
}

void operator delete(void* block) noexcept { hwt::test::allocation_hook::release(block); }
void operator delete[](void* block) noexcept { hwt::test::allocation_hook::release(block); }
void operator delete(void* block, std::size_t) noexcept { hwt::test::allocation_hook::release(block); }
void operator delete[](void* block, std::size_t) noexcept { hwt::test::allocation_hook::release(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { hwt::test::allocation_hook::release(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { hwt::test::allocation_hook::release(block); }
void operator delete(void* block, std::align_val_t) noexcept { hwt::test::allocation_hook::release(block); }
void operator delete[](void* block, std::align_val_t) noexcept { hwt::test::allocation_hook::release(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  hwt::test::allocation_hook::release(block);
}
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept {
  hwt::test::allocation_hook::release(block);
}
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  hwt::test::allocation_hook::release(block);
}
void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  hwt::test::allocation_hook::release(block);
}
