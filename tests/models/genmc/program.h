#pragma once

// Declarations of GenMC that these programs use, and replacements for compiled libraries, which GenMC cannot read. One
// program is one translation unit.

#include <cstddef>
#include <new>

// NOLINTBEGIN(bugprone-reserved-identifier): GenMC's own names
extern "C" {
int __VERIFIER_thread_create(const void* attributes, void* (*start)(void*), void* argument) noexcept;
void* __VERIFIER_thread_join(long thread) noexcept;
void __VERIFIER_loop_begin() noexcept;
void __VERIFIER_spin_start() noexcept;
void __VERIFIER_spin_end(bool) noexcept;
void __VERIFIER_assert_fail(const char* what, const char* file, int line) noexcept;
void* __VERIFIER_malloc(std::size_t size) noexcept;
void __VERIFIER_free(void* memory) noexcept;
}
// NOLINTEND(bugprone-reserved-identifier)

#define MODEL_ASSERT(what) ((what) ? void() : __VERIFIER_assert_fail(#what, __FILE__, __LINE__))

// So that memory that is used after its end is noticed.
inline const std::nothrow_t std::nothrow{};
void* operator new(std::size_t size) { return __VERIFIER_malloc(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return __VERIFIER_malloc(size); }
void operator delete(void* memory) noexcept { __VERIFIER_free(memory); }
void operator delete(void* memory, std::size_t) noexcept { __VERIFIER_free(memory); }

extern "C" void __assert_fail(const char* what, const char* file, unsigned line, const char*) noexcept {
  __VERIFIER_assert_fail(what, file, static_cast<int>(line));
  __builtin_unreachable();
}

namespace model {

/// Waits until done() is true. GenMC tries each value that done() may find, and also an execution in which the thread
/// waits for ever. It reports that execution only if no other thread can make done() true.
template <class Done>
void wait_until(Done done) noexcept {
  __VERIFIER_loop_begin();
  for (bool over = false; !over;) {
    __VERIFIER_spin_start();
    over = done();
    __VERIFIER_spin_end(over);
  }
}

/// Each function in a thread of its own; returns when all have.
template <void (*... functions)()>
void run() {
  constexpr auto start = [](void* function) -> void* {
    reinterpret_cast<void (*)()>(function)();
    return nullptr;
  };
  const int threads[] = {__VERIFIER_thread_create(nullptr, start, reinterpret_cast<void*>(functions))...};
  for (const int thread : threads) __VERIFIER_thread_join(thread);
}

}  // namespace model
