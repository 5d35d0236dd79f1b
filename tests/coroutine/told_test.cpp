// A task that is told when it will not run (detail::NotRun), for every Timer. Each task either runs once or is told
// once, unless its timeout is cancelled.

#include <array>
#include <optional>
#include <random>

#include "tests/support/any_timer.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using detail::NotRun;

/// Counts how a Waiter ended.
struct Story {
  std::atomic<int> runs = 0;
  std::atomic<int> told = 0;
  std::optional<NotRun> why;
  std::thread::id told_on;
  std::function<void()> when_told;
  bool destroyed = false;
};

class Waiter {
 public:
  explicit Waiter(Story& story) : story_(&story) {}
  Waiter(const Waiter&) = default;
  Waiter(Waiter&& other) noexcept : story_(std::exchange(other.story_, nullptr)) {}
  Waiter& operator=(Waiter&&) = delete;
  ~Waiter() {
    if (story_ != nullptr) story_->destroyed = true;
  }

  void operator()() { ++story_->runs; }
  void will_not_run(NotRun why) {
    EXPECT_FALSE(story_->destroyed);
    story_->why = why;
    story_->told_on = std::this_thread::get_id();
    ++story_->told;
    if (story_->when_told) story_->when_told();
  }

 private:
  Story* story_;
};

/// Too large for a node.
struct LargeWaiter : Waiter {
  using Waiter::Waiter;
  std::array<char, 100> more{};
};

template <class T>
class Told : public ::testing::Test {};

TYPED_TEST_SUITE(Told, AllTimers);

TYPED_TEST(Told, ByStopOnItsThreadBeforeItReturns) {
  Story story;
  const auto timer = make_timer<TypeParam>();
  timer->new_timeout(Waiter(story), kFar);
  const std::vector<Timeout> unprocessed = timer->stop();
  EXPECT_EQ(unprocessed.size(), 1);
  EXPECT_EQ(story.told, 1);
  EXPECT_EQ(story.why, NotRun::Stopped);
  EXPECT_EQ(story.told_on, std::this_thread::get_id());
  EXPECT_FALSE(story.destroyed);
}

TYPED_TEST(Told, ByTheDestructorOnItsThreadBeforeItReturns) {
  Story story;
  Story large;
  auto timer = make_timer<TypeParam>();
  const Timeout kept = timer->new_timeout(Waiter(story), kFar);
  timer->new_timeout(LargeWaiter(large), kFar);
  timer.reset();
  for (Story* each : {&story, &large}) {
    EXPECT_EQ(each->told, 1);
    EXPECT_EQ(each->why, NotRun::Stopped);
    EXPECT_EQ(each->told_on, std::this_thread::get_id());
    EXPECT_TRUE(each->destroyed);
  }
}

TYPED_TEST(Told, NotAfterACancel) {
  Story story;
  const auto timer = make_timer<TypeParam>();
  EXPECT_TRUE(timer->new_timeout(Waiter(story), kFar).cancel());
  EXPECT_TRUE(timer->new_timeout(Waiter(story), kFar).cancel_and_wait());
  EXPECT_TRUE(timer->stop().empty());
  EXPECT_EQ(story.told, 0);
}

TYPED_TEST(Told, TheFirstMayDestroyTheTimerInStop) {
  Story first;
  Story others;
  auto timer = make_timer<TypeParam>();
  first.when_told = [&] { timer.reset(); };
  timer->new_timeout(Waiter(first), 1h);
  for (int i = 0; i < 100; ++i) timer->new_timeout(Waiter(others), 2h);
  EXPECT_EQ(timer->stop().size(), 101);
  EXPECT_EQ(timer, nullptr);
  EXPECT_EQ(first.told, 1);
  EXPECT_EQ(others.told, 100);
}

TYPED_TEST(Told, AndItsExceptionIsReported) {
  Story story;
  ErrorLog errors;  // after `story`, because it keeps timeouts whose callables write to `story` when they end
  auto timer = make_timer<TypeParam>({.on_task_error = errors.handler()});
  story.when_told = [] { throw 7; };
  timer->new_timeout(Waiter(story), kFar);
  timer->new_timeout(Waiter(story), kFar);
  EXPECT_EQ(timer->stop().size(), 2);
  timer.reset();
  EXPECT_EQ(errors.errors(), (std::vector<std::string>{"7", "7"}));
}

template <class T>
class ToldByThreadedTimer : public ::testing::Test {};
TYPED_TEST_SUITE(ToldByThreadedTimer, ThreadedTimers);

TYPED_TEST(ToldByThreadedTimer, InsideNewTimeoutThatRefusesAfterTakingTheCallable) {
  Story story;
  auto timer = std::make_unique<TypeParam>(Options{.tick_duration = 1ms, .max_pending_timeouts = 1});
  struct FillsTheTimer : Waiter {
    FillsTheTimer(Story& story, Timer& timer) : Waiter(story), timer(&timer) {}
    FillsTheTimer(FillsTheTimer&& other) noexcept : Waiter(std::move(other)), timer(other.timer) {
      timer->new_timeout([] {}, kFar);
    }
    Timer* timer;
  };
  EXPECT_FALSE(timer->try_new_timeout(FillsTheTimer(story, *timer), kFar));
  EXPECT_EQ(story.told, 1);
  EXPECT_EQ(story.why, NotRun::Refused);
  EXPECT_TRUE(story.destroyed);

  Story not_taken;
  EXPECT_THROW(timer->new_timeout(Waiter(not_taken), kFar), RejectedExecution);
  EXPECT_EQ(not_taken.told, 0);
  timer.reset();
  EXPECT_EQ(story.told, 1);
}

TYPED_TEST(ToldByThreadedTimer, WhenTheExecutorDropsItsJob) {
  Story story;
  Latch dropped;
  story.when_told = [&] { dropped.count_down(); };
  TypeParam timer({.tick_duration = 1ms, .executor = [](std::function<void()>) {}});
  timer.new_timeout(Waiter(story), 0ms);
  EXPECT_TRUE(dropped.wait());
  EXPECT_TRUE(timer.stop().empty());
  EXPECT_EQ(story.told, 1);
  EXPECT_EQ(story.why, NotRun::Dropped);
  EXPECT_EQ(story.runs, 0);
}

TYPED_TEST(ToldByThreadedTimer, NotWhenTheJobIsDisarmedOrHasRun) {
  Story disarmed;
  Story run;
  JobQueue queue;
  TypeParam timer({.tick_duration = 1ms, .executor = queue.executor()});
  Timeout timeout = timer.new_timeout(Waiter(disarmed), 0ms);
  timer.new_timeout(Waiter(run), 0ms);
  ASSERT_TRUE(queue.wait_for(2));
  EXPECT_TRUE(timeout.cancel_and_wait());
  EXPECT_TRUE(timer.stop().empty());
  queue.run_all();
  EXPECT_EQ(disarmed.told + disarmed.runs, 0);
  EXPECT_EQ(run.told, 0);
  EXPECT_EQ(run.runs, 1);
}

// Expiry, cancel() and stop() race. Each Waiter meets exactly one of them.
TYPED_TEST(Told, OnceInEveryRace) {
  constexpr std::size_t kWaiters = 64;
  const Deadline over(HWT_TEST_SANITIZED ? 3s : 1s);
  std::minstd_rand random(7);
  do {
    std::array<Story, kWaiters> stories;
    std::atomic<int> cancelled = 0;
    const auto timer = make_timer<TypeParam>();
    std::vector<Timeout> timeouts;
    for (Story& story : stories) {
      timeouts.push_back(timer->new_timeout(Waiter(story), std::chrono::microseconds(random() % 2000)));
    }
    std::size_t unprocessed = 0;
    run_together(3, [&](int index) {
      if (index == 0) unprocessed = timer->stop().size();
      if (index == 1) {
        for (Timeout& timeout : timeouts) cancelled += timeout.cancel() ? 1 : 0;
      }
      for (int i = 0; index == 2 && i < 2; ++i) turn(*timer);
    });
    int runs = 0;
    int told = 0;
    for (const Story& story : stories) {
      EXPECT_LE(story.runs + story.told, 1);
      runs += story.runs;
      told += story.told;
    }
    EXPECT_EQ(runs + told + cancelled, static_cast<int>(kWaiters));
    EXPECT_EQ(told, static_cast<int>(unprocessed));
    EXPECT_EQ(timer->pending_timeouts(), 0);
  } while (!over.passed() && !::testing::Test::HasFailure());
}

}  // namespace
}  // namespace hwt
