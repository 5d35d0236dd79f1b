// malloc itself, not operator new, has no memory at a thread's first use of a timer. The C library needs it to register
// functions for the end of the thread. With the C library of GNU, whose malloc a program can replace.

#if defined(__GLIBC__) || defined(__linux__)
#include <features.h>
#endif
#include "tests/support/test_support.h"

#if defined(__GLIBC__) && !HWT_TEST_SANITIZED

#include <pthread.h>

#include <cerrno>
#include <cstdlib>
#include <new>

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/memory/node_pool.h"
#include "tests/support/worker_call.h"

namespace {
// While it is set, this thread's malloc has nothing.
constinit thread_local bool no_malloc = false;
constinit std::atomic<int> refused{0};

bool refuse() noexcept {
  if (!no_malloc) return false;
  ++refused;
  errno = ENOMEM;
  return true;
}
}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier,readability-inconsistent-declaration-parameter-name)
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_memalign(std::size_t align, std::size_t size);
void* malloc(std::size_t size) { return refuse() ? nullptr : __libc_malloc(size); }
void* calloc(std::size_t count, std::size_t size) { return refuse() ? nullptr : __libc_calloc(count, size); }
}
// NOLINTEND(bugprone-reserved-identifier,readability-inconsistent-declaration-parameter-name)

// The program's own, which still has memory: it is malloc that has none.
void* operator new(std::size_t size) { return __libc_malloc(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return __libc_malloc(size); }
void* operator new(std::size_t size, std::align_val_t align) {
  return __libc_memalign(static_cast<std::size_t>(align), size);
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }

namespace hwt::test {
namespace {

/// The first 32 keys of a program need no memory, so these are taken before the library makes its own.
struct FirstKeys {
  FirstKeys() {
    for (pthread_key_t& key : keys) EXPECT_EQ(pthread_key_create(&key, nullptr), 0);
  }
  std::array<pthread_key_t, 32> keys{};
};
const FirstKeys first_keys;

template <class F>
void on_new_thread_without_malloc(F f) {
  std::thread([&] {
    no_malloc = true;
    f();
    no_malloc = false;
  }).join();
}

TEST(WithoutMalloc, TheFirstUseThrowsBadAllocAndTheNextSucceedsAlsoThatOfAThreadAfterOneThatGaveUp) {
  HashedWheelTimer timer(1ms);
  timer.start();
  refused = 0;
  for (int i = 0; i < 10; ++i) {
    on_new_thread_without_malloc([&] {
      const bool thrown = throws<std::bad_alloc>([&] { timer.new_timeout([] {}, kFar); });
      no_malloc = false;
      EXPECT_TRUE(thrown);
      EXPECT_EQ(timer.pending_timeouts(), 0);
      if (i != 9) return;
      EXPECT_TRUE(timer.new_timeout([] {}, kFar).cancel());
    });
  }
  EXPECT_GT(refused, 0) << "nothing has asked malloc";
  const Timeout timeout = timer.new_timeout([] {}, kFar);
  EXPECT_EQ(producers_of(internal::Node::of(timeout)->core()), 1) << "each left its producer to the next";
}

TEST(WithoutMalloc, TheFirstUseMayBeACancel) {
  HashedWheelTimer timer(1ms);
  Timeout timeout = timer.new_timeout([] {}, kFar);
  await_transfer(timer);
  refused = 0;
  on_new_thread_without_malloc([&] { EXPECT_TRUE(timeout.cancel()); });
  EXPECT_GT(refused, 0) << "nothing has asked malloc";
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

}  // namespace
}  // namespace hwt::test

#endif
