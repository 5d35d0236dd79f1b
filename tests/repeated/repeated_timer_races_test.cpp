// RepeatedTimer on a real timer, called from several threads at once while it triggers. Meant for ThreadSanitizer.

#include "tests/support/repeated_timer_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

constexpr auto kHunt = 400ms;
constexpr int kThreads = 3;

/// Hooks that check the promises: one at a time, and none after the last.
class Watch {
 public:
  RepeatedTimer::Hooks hooks(std::function<void()> during = {}) {
    return {.on_trigger =
                [this, during] {
                  const Inside inside(*this);
                  ++triggers_;
                  if (during) during();
                },
            .adjust_timeout =
                [this](auto timeout) {
                  const Inside inside(*this);
                  return timeout;
                },
            .on_destroy =
                [this] {
                  const Inside inside(*this);
                  ++destroyed_;
                }};
  }
  int triggers() const { return triggers_; }
  int destroyed() const { return destroyed_; }

 private:
  struct Inside {
    explicit Inside(Watch& watch) : watch_(watch) {
      EXPECT_EQ(watch_.inside_++, 0) << "hooks overlap";
      ++watch_.unguarded_;  // for the sanitizer: hooks need no lock among themselves
      EXPECT_EQ(watch_.destroyed_, 0) << "a hook after on_destroy";
    }
    ~Inside() { --watch_.inside_; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    Watch& watch_;
  };

  std::atomic<int> inside_ = 0, triggers_ = 0, destroyed_ = 0;
  int unguarded_ = 0;
};

void random_call(RepeatedTimer& timer, std::minstd_rand& random) {
  switch (random() % 7) {
    case 0:
      return timer.start();
    case 1:
      return timer.stop();
    case 2:
      return timer.restart();
    case 3:
      return timer.reset();
    case 4:
      return timer.reset(std::chrono::milliseconds(1 + random() % 3));
    case 5:
      timer.run_once_now();
      return;
    default:
      EXPECT_FALSE(timer.describe().empty());
      EXPECT_GE(timer.timeout(), 1ms);
      timer.running();
  }
}

/// Lets triggers come between the calls.
void pause_now_and_then(std::minstd_rand& random) {
  if (random() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
}

/// Makes random calls on threads and inside triggers. `wheel` must refuse a second timeout, so that a second arming
/// shows.
void hunt(HashedWheelTimer& wheel, Watch& watch) {
  std::minstd_rand inner(7);
  std::mutex mutex;
  std::set<std::int64_t> refused;  // how many had expired each time
  RepeatedTimer* self = nullptr;   // set before the first start()
  RepeatedTimer timer("hunted", 1ms, wheel, watch.hooks([&] { random_call(*self, inner); }));
  self = &timer;
  run_together(kThreads, [&](int thread) {
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    for (const Deadline end(kHunt); !end.passed();) {
      try {
        random_call(timer, random);
      } catch (const RejectedExecution&) {
        const std::lock_guard lock(mutex);
        refused.insert(wheel.stats().expired);
      }
      pause_now_and_then(random);
    }
  });
  // Rarely: the armed one was claimed but not counted yet. While the worker is preempted there, many are refused.
  EXPECT_LE(refused.size(), 3U) << "armed twice";
  const int before = watch.triggers();
  EXPECT_TRUE(eventually([&] {
    try {
      if (!timer.running()) timer.start();  // the trigger itself may stop it
    } catch (const RejectedExecution&) {    // the expired timeout is not counted yet
    }
    return watch.triggers() > before;
  })) << "it is still usable";
  timer.destroy();
  EXPECT_TRUE(none_pending(wheel));
}

TEST(RepeatedTimerRaces, AnyCallsFromManyThreadsWithoutAndWithAnExecutor) {
  for (const bool has_executor : {false, true}) {
    Watch watch;
    ThreadPerJob threads;
    Options options{.tick_duration = 1ms, .max_pending_timeouts = 1};
    if (has_executor) options.executor = threads.executor();
    HashedWheelTimer wheel(options);
    hunt(wheel, watch);
    EXPECT_EQ(watch.destroyed(), 1);
  }
}

TEST(RepeatedTimerRaces, DestroyFromEverywhereRunsOnDestroyOnce) {
  HashedWheelTimer wheel(1ms, 64);
  std::minstd_rand seeds(1);
  for (const Deadline end(kHunt); !end.passed();) {
    Watch watch;
    {
      const int trigger_that_destroys = static_cast<int>(seeds() % 4);
      const bool only_the_destructor = seeds() % 2 == 0;  // perhaps inside a hook
      RepeatedTimer* self = nullptr;
      RepeatedTimer timer("destroyed", 1ms, wheel, watch.hooks([&] {
        if (watch.triggers() >= trigger_that_destroys) self->destroy();
      }));
      self = &timer;
      timer.start();
      std::array<unsigned, kThreads> seed{};
      for (unsigned& s : seed) s = seeds() % 1000 + 1;
      run_together(kThreads, [&](int thread) {
        std::minstd_rand random(seed[static_cast<std::size_t>(thread)]);
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
        for (int i = 0; i < 5; ++i) random_call(timer, random);
        if (only_the_destructor) return;
        timer.destroy();
        EXPECT_FALSE(timer.running());
        EXPECT_FALSE(timer.run_once_now());
      });
      EXPECT_TRUE(only_the_destructor || none_pending(wheel));
    }
    EXPECT_EQ(watch.destroyed(), 1);
    const int triggers = watch.triggers();
    EXPECT_TRUE(none_pending(wheel));
    EXPECT_EQ(watch.triggers(), triggers) << "a hook after the destructor";
  }
}

TEST(RepeatedTimerRaces, AnArmedTimeoutKeepsItsPlaceAtTheLimit) {
  HashedWheelTimer wheel({.tick_duration = 1ms, .max_pending_timeouts = 1});
  RepeatedTimer timer("place", kFar, wheel, {.on_trigger = [] {}});
  timer.start();
  const std::jthread other([&](const std::stop_token& over) {
    while (!over.stop_requested()) EXPECT_FALSE(wheel.try_new_timeout([] {}, kFar));
  });
  for (int i = 0; i < 20'000; ++i) {
    EXPECT_NO_THROW(i % 16 == 0 ? timer.reset(kFar - i * 1ms) : i % 2 == 0 ? timer.reset() : timer.restart());
  }
  EXPECT_TRUE(timer.running());
}

}  // namespace
}  // namespace hwt
