// KeyedTimer, RepeatedTimer and schedules in a forked child. The fork may come at any moment of the parent's threads.

#if !defined(_WIN32)

#include "tests/support/forked_child.h"

#include "hashed_wheel_timer/keyed_timer.h"
#include "hashed_wheel_timer/repeated_timer.h"
#include "hashed_wheel_timer/schedule.h"
#include "tests/support/held_timer.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

using Keyed = KeyedTimer<int, std::string>;
constexpr int kForks = kSanitized ? 30 : 150;

/// Expects that f() returns 0 in forked children, while threads repeat work(random).
template <class Work, class F>
void expect_children_return_0(int threads, Work work, F f) {
  std::atomic<bool> over = false;
  const auto busy = start_threads(threads, [&](int index) {
    std::minstd_rand random(static_cast<unsigned>(index) + 1);
    while (!over) work(random);
  });
  for (int i = 0; i < kForks && !testing::Test::HasFailure(); ++i) EXPECT_EQ(status_of_child(f), 0);
  over = true;
}

TEST(ForkedKeyedTimer, CanBeStoppedAndDestroyedInTheMiddleOfAnyCallOfTheParent) {
  HashedWheelTimer timer(1ms, 64);
  std::unique_ptr<Keyed> keyed = std::make_unique<Keyed>(timer, [](const int&, std::string&) {});
  const auto work = [&](auto& random) {
    const int key = static_cast<int>(random() % 5000);
    const auto call = random() % 8;
    if (call < 2) keyed->remove(key);
    if (call == 2) (void)keyed->move(key, (random() % 5000) * 1us);
    if (call == 3 && random() % 1000 == 0) keyed->drain();  // tables grow again
    if (call > 3) (void)keyed->set(key, "a value that does not fit into the string", (random() % 20'000) * 1us);
  };
  expect_children_return_0(2, work, [&] {
    if (!keyed->stop().empty() || !keyed->drain().empty()) return 1;
    return keyed.reset(), 0;
  });
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

TEST(ForkedRepeatedTimer, CanBeStoppedAndDestroyedInTheMiddleOfAnyCallOfTheParent) {
  HashedWheelTimer wheel(1ms, 64);
  auto timer = std::make_unique<RepeatedTimer>("forked", 1ms, wheel, RepeatedTimer::Hooks{.on_trigger = [] {}});
  const auto work = [&](auto& random) {
    const auto call = random() % 4;
    if (call == 0) timer->stop();
    if (call == 1) timer->run_once_now();
    if (call > 1) timer->restart();
  };
  expect_children_return_0(1, work, [&] { return timer->stop(), timer->destroy(), timer.reset(), 0; });
}

/// Destructors of objects that a hook owns may need threads or locks of the parent.
TEST(ForkedRepeatedTimer, DoesNotWaitForAHookOfTheParentAndCallsAndDestroysNone) {
  Hold hold;
  std::atomic<int> destroyed = 0, released = 0;
  HashedWheelTimer wheel(1ms, 64);
  auto owned = std::shared_ptr<int>(new int, [&](int* memory) {
    ++released;
    delete memory;
  });
  auto timer =
      std::make_unique<RepeatedTimer>("forked", 1ms, wheel,
                                      RepeatedTimer::Hooks{.on_trigger = [&, owned = std::move(owned)] { hold(); },
                                                           .on_destroy = [&] { ++destroyed; }});
  timer->start();
  ASSERT_TRUE(hold.wait_until_entered());
  EXPECT_EQ(status_of_child([&] {
              timer.reset();
              return destroyed + released;
            }),
            0);
  hold.let_go();
  timer.reset();
  EXPECT_EQ(destroyed, 1) << "the parent's own";
  EXPECT_EQ(released, 1) << "or this test could not fail";
}

TEST(ForkedRepeatedTimer, DoesNotWaitForAThreadOfTheParentThatArms) {
  for (const auto at : {HeldTimer::At::Entry, HeldTimer::At::Exit}) {
    HeldTimer wheel;
    auto timer = std::make_unique<RepeatedTimer>("forked", kFar, wheel, RepeatedTimer::Hooks{.on_trigger = [] {}});
    wheel.hold_next(at);
    std::jthread starting([&] { timer->start(); });
    ASSERT_TRUE(wheel.wait_until_held());
    const auto use = [&] { return timer->start(), timer->stop(), timer->destroy(), timer->running(); };
    EXPECT_EQ(status_of_child([&] { return use() ? (timer.reset(), 0) : 1; }), 0);
    wheel.go_on();
  }
}

TEST(ForkedSchedule, CanBeCancelledAndDroppedInTheMiddleOfAnyCallOfTheParent) {
  HashedWheelTimer wheel(1ms, 64);
  std::mutex mutex;  // of `task`; the child has a copy that it alone uses
  std::shared_ptr<ScheduledTask> task = schedule(wheel, Schedule::fixed_rate(0s, 1ms), [] {});
  std::atomic<bool> over = false;
  std::jthread other([&] {
    while (!over) {
      auto next = schedule(wheel, Schedule::fixed_rate(0s, 1ms), [] {});
      {
        const std::lock_guard lock(mutex);
        task.swap(next);
      }
      next->cancel();
    }
  });
  for (int i = 0; i < kForks && !HasFailure(); ++i) {
    std::shared_ptr<ScheduledTask> inherited;
    {
      const std::lock_guard lock(mutex);
      inherited = task;
    }
    EXPECT_EQ(status_of_child([&] { return inherited->cancel() ? 1 : (inherited.reset(), 0); }), 0);
  }
  over = true;
}

TEST(ForkedChild, FindsWhatWasRunningInTheParentRunning) {
  HashedWheelTimer wheel;
  RepeatedTimer timer("forked", kFar, wheel, RepeatedTimer::Hooks{.on_trigger = [] {}});
  timer.start();
  const auto task = schedule(wheel, Schedule::once(kFar), [] {});
  EXPECT_EQ(status_of_child([&] { return timer.running() && !task->done() && task->next() ? 0 : 1; }), 0);
}

}  // namespace
}  // namespace hwt

#endif
