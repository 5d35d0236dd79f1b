// KeyedTimer in a forked child. The fork may come at any moment of the parent's threads.

#if !defined(_WIN32)

#include "hashed_wheel_timer/keyed_timer.h"
#include "tests/support/forked_child.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using Keyed = KeyedTimer<int, std::string>;

constexpr int kForks = kSanitized ? 30 : 150;

TEST(ForkedKeyedTimer, CanBeStoppedAndDestroyedInTheMiddleOfAnyCallOfTheParent) {
  HashedWheelTimer timer(1ms, 64);
  std::unique_ptr<Keyed> keyed = std::make_unique<Keyed>(timer, [](const int&, std::string&) {});
  std::atomic<bool> over = false;
  std::vector<std::jthread> threads;
  for (unsigned thread = 1; thread <= 2; ++thread) {
    threads.emplace_back([&, thread] {
      std::minstd_rand random(thread);
      while (!over) {
        const int key = static_cast<int>(random() % 5000);
        const auto call = random() % 8;
        if (call < 2) keyed->remove(key);
        if (call == 2) (void)keyed->move(key, (random() % 5000) * 1us);
        if (call == 3 && random() % 1000 == 0) keyed->drain();  // tables grow again
        if (call > 3) (void)keyed->set(key, "a value that does not fit into the string", (random() % 20'000) * 1us);
      }
    });
  }
  for (int i = 0; i < kForks && !HasFailure(); ++i) {
    EXPECT_EQ(status_of_child([&] {
                if (!keyed->stop().empty() || !keyed->drain().empty()) return 1;
                keyed.reset();
                return 0;
              }),
              0);
  }
  over = true;
}

TEST(ForkedKeyedTimer, DoesNotWaitForAnOnExpireOfTheParent) {
  Hold hold;
  HashedWheelTimer timer(1ms, 64);
  auto keyed = std::make_unique<Keyed>(timer, [&](const int&, std::string&) { hold(); });
  (void)keyed->set(1, "", 0ms);
  ASSERT_TRUE(hold.wait_until_entered());
  EXPECT_EQ(status_of_child([&] { return keyed.reset(), 0; }), 0);
  hold.let_go();
}

TEST(ForkedKeyedTimer, AChildMayHaveItsOwn) {
  // No thread: the child allocates, and AddressSanitizer's allocator keeps the locks of the parent's other threads.
  ManualTimer timer;
  Keyed keyed(timer, [](const int&, std::string&) {});
  (void)keyed.set(1, "", kFar);
  EXPECT_EQ(status_of_child([] {
              ManualTimer own;
              int expired = 0;
              {
                Keyed its(own, [&](const int&, std::string&) { ++expired; });
                (void)its.set(1, "", 1ms);
                own.advance(1ms);
                (void)its.set(2, "", 1ms);
              }
              return expired == 1 && own.pending_timeouts() == 0 ? 0 : 1;
            }),
            0);
  EXPECT_EQ(keyed.stop().size(), 1U) << "the parent's is untouched";
}

}  // namespace
}  // namespace hwt

#endif
