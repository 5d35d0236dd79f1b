// Tests the pair of fences that prevents lost wake-ups of the worker. Two threads each store a variable, fence, and
// load the other's variable: at least one of them sees the other's store.

#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"

#include <cstdlib>

#include "tests/support/test_support.h"

#if defined(__linux__)
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>

#include "tests/support/denied_call.h"
#include "tests/support/forked_child.h"
#endif

namespace hwt::internal {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

/// A spin barrier for two threads. With one that has a lock the hunt has far fewer rounds.
class Meeting {
 public:
  void come() {
    const int round = round_.load();
    if (arrived_.fetch_add(1) == 1) {
      arrived_ = 0;
      ++round_;
      return;
    }
    for (int spins = 0; round_.load() == round; ++spins)
      if (spins > 10'000) std::this_thread::yield();
  }

 private:
  std::atomic<int> arrived_ = 0, round_ = 0;
};

/// Two threads store and then load, at nearly the same time. They meet for a series of rounds, each on its own memory.
/// Before each store, slow stores to cache lines that the other thread has just written fill the store buffer. Without
/// a fence, the load overtakes all of them. Thread 0 is the worker, and thread 1 is a producer.
class Hunt {
 public:
  void expect_one_side_sees_the_other() {
    int rounds = 0, both_blind = 0;
    bool over = false;
    const Deadline end(1500ms);
    run_together(2, [&](int thread) {
      const auto mine = static_cast<std::size_t>(thread);
      const std::size_t theirs = 1 - mine;
      for (unsigned seed = 1 + static_cast<unsigned>(thread);;) {
        for (Round& round : rounds_) slow_down(round[theirs], 1);
        if (thread == 0) over = end.passed();
        meeting_.come();
        if (over) return;
        for (Round& round : rounds_) pass(round[mine], round[theirs], thread == 0, seed);
        meeting_.come();
        if (thread != 0) continue;
        for (Round& round : rounds_) {
          ++rounds;
          both_blind += round[0].seen == 0 && round[1].seen == 0 ? 1 : 0;
          for (Side& side : round) side.stored = side.here = 0;
        }
      }
    });
    EXPECT_GT(rounds, 100);
    EXPECT_EQ(both_blind, 0) << "of " << rounds << " rounds";
  }

 private:
  struct alignas(64) Line : std::atomic<int> {
    using std::atomic<int>::operator=;
  };
  struct Side {
    std::array<Line, 6> slow;
    Line here;
    Line stored;
    int seen;
  };
  using Round = std::array<Side, 2>;

  static void slow_down(Side& side, int value) {
    for (Line& line : side.slow) line.store(value, std::memory_order_relaxed);
  }

  static void pass(Side& mine, Side& theirs, bool heavy, unsigned& seed) {
    mine.here = 1;
    for (int spins = 0; theirs.here == 0; ++spins)
      if (spins > 10'000) std::this_thread::yield();
    seed = seed * 1'664'525 + 1'013'904'223;
    for (unsigned spin = seed >> 25; spin > 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
    slow_down(mine, 2);
    mine.stored.store(1, std::memory_order_relaxed);
    heavy ? AsymmetricFence::heavy() : AsymmetricFence::light();
    mine.seen = theirs.stored.load(std::memory_order_relaxed);
  }

  std::vector<Round> rounds_{200};
  Meeting meeting_;
};

/// Before prepare(), and on systems without an asymmetric fence, both sides are full fences. prepare() holds for the
/// rest of the process, so this is one test.
TEST(AsymmetricFence, OneSideSeesTheOtherWithFullFencesAndOncePrepared) {
  {
    SCOPED_TRACE("two full fences");
    Hunt().expect_one_side_sees_the_other();
  }
  AsymmetricFence::prepare();
  AsymmetricFence::prepare();  // as each timer does
  Hunt().expect_one_side_sees_the_other();
}

#if defined(__linux__) && defined(SYS_membarrier)

bool asks_the_system() {
  const long supported = syscall(SYS_membarrier, 0, 0, 0);
  constexpr long kPrivateExpedited = 1 << 3;
  return !HWT_TEST_THREAD_SANITIZER && supported > 0 && (supported & kPrivateExpedited) != 0;
}

/// A thread that passed the light side before may have stores in its store buffer. They need time to leave it.
TEST(AsymmetricFence, AllHeavySidesWaitOnceTheSystemHasWithdrawnItsHelp) {
  if (!asks_the_system()) GTEST_SKIP() << "this system has no membarrier()";
  run_in_child([] {
    AsymmetricFence::prepare();
    AsymmetricFence::heavy();
    if (!from_now_on(SYS_membarrier, SECCOMP_RET_ERRNO | EPERM)) return false;
    const auto begun = steady_clock::now();
    std::atomic<int> early = 0;
    run_together(4, [&](int i) {
      std::this_thread::sleep_for(i * 2ms);  // so that most come while the first one waits
      AsymmetricFence::heavy();
      if (steady_clock::now() < begun + 10ms) ++early;
    });
    if (early != 0) std::_Exit(1);  // false would mean that the system has no filters
    return true;
  });
}

/// Without membarrier() on the heavy side, each request would pay for a full fence.
TEST(AsymmetricFence, CallsTheSystemOnTheHeavySideWhereverThatIsPossible) {
  if (!asks_the_system()) GTEST_SKIP() << "this system has no membarrier()";
  constexpr int kNoFilters = 77;
  const int status = status_of_child([] {
    AsymmetricFence::prepare();
    for (int i = 0; i < 2; ++i) AsymmetricFence::heavy();
    if (!from_now_on(SYS_membarrier, SECCOMP_RET_KILL)) return kNoFilters;
    AsymmetricFence::heavy();
    return 0;
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoFilters) GTEST_SKIP() << "this system has no filters";
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) << "heavy() made no system call: " << status;
}

#endif

}  // namespace
}  // namespace hwt::internal
