// A task that is told when it will not run (detail::NotRun), for every Timer. Sleeping coroutines are such tasks. So
// coroutine_test has the races, the exceptions, and a task that destroys the timer when it is told.

#include "hashed_wheel_timer/detail/task.h"
#include "tests/support/any_timer.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using detail::NotRun;

/// Counts how a Waiter ended.
struct Story {
  std::atomic<int> runs = 0, told = 0;
  std::optional<NotRun> why;
  std::thread::id told_on;
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

}  // namespace
}  // namespace hwt
