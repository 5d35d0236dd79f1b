// Tests that a worker does not inherit the affinity and the scheduling policy of the thread that creates it, and that a
// timer needs a pthread key.

#include "hashed_wheel_timer/internal/platform/threads.h"

#if defined(__linux__)

#include <pthread.h>
#include <sched.h>

#include <system_error>

#include "tests/support/forked_child.h"
#include "tests/support/test_support.h"

namespace hwt::internal {
namespace {

class WorkerThread : public ::testing::Test {
 protected:
  /// Calls `prepare` on a new thread, which then creates a worker thread that calls `check`.
  template <class Prepare, class Check>
  static void on_worker_made_after(Prepare prepare, Check check) {
    std::thread([&] {
      prepare();
      make_worker_thread(check).join();
    }).join();
  }

  static cpu_set_t processors() {
    cpu_set_t set;
    EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    return set;
  }
};

TEST_F(WorkerThread, RunsOnTheProcessorsOfTheProcessNotOnThoseOfItsMaker) {
  const cpu_set_t all = processors();
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one processor";
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  on_worker_made_after([&] { ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0); },
                       [&] {
                         // The creator sets the affinity from outside, possibly a moment later.
                         EXPECT_TRUE(test::eventually([&] {
                           const cpu_set_t set = processors();
                           return CPU_EQUAL(&set, &all);
                         }));
                       });
}

TEST_F(WorkerThread, HasTheDefaultPolicyNotItsMakers) {
  const sched_param none{};
  on_worker_made_after([&] { ASSERT_EQ(sched_setscheduler(0, SCHED_BATCH, &none), 0); },
                       [] { EXPECT_TRUE(test::eventually([] { return sched_getscheduler(0) == SCHED_OTHER; })); });
}

/// When all pthread keys are taken, the constructor of a timer throws. Key 0 is a valid key. No test of this program
/// may make a timer before, because the library would keep its key. A sanitizer takes key 0 itself.
TEST(ThreadKey, IsRequiredByATimerAndMayBeNumberZero) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer has key 0";
  const int status = test::status_of_child([]() noexcept {
    pthread_key_t key{};
    while (pthread_key_create(&key, nullptr) == 0) continue;
    try {
      const ManualTimer timer;
      return 1;
    } catch (const std::system_error&) {
      pthread_key_delete(0);
    }
    ManualTimer first, second;
    return first.add([] {}, test::kFar) && second.add([] {}, test::kFar) ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace hwt::internal

#endif
