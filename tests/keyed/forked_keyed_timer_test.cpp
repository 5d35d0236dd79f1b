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

}  // namespace
}  // namespace hwt

#endif
