// gRPC's promises for RunAfter() and Cancel() of an EventEngine, kept by the engine of docs/examples/grpc_event_engine.

#include "docs/examples/grpc_event_engine/wheel_event_engine.h"

#include <grpc/grpc.h>

#include <deque>

#include "tests/support/test_support.h"

namespace engine {
namespace {

using namespace hwt::test;  // NOLINT(google-build-using-namespace)
using Handle = EventEngine::TaskHandle;
using Job = WheelEventEngine::Job;

/// The engine behind a WheelEventEngine. It only runs closures, on its threads or in run_all().
class Rest : public EventEngine {
 public:
  explicit Rest(int threads) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this] {
        while (run_one(true)) continue;
      });
    }
  }
  /// Runs the remaining closures.
  ~Rest() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    something_to_do_.notify_all();
  }

  int run_all() {
    int count = 0;
    while (run_one(false)) ++count;
    return count;
  }

  void Run(Closure* closure) override {
    Run([closure] { closure->Run(); });
  }
  void Run(Job job) override {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    something_to_do_.notify_one();
  }

  TaskHandle RunAfter(Duration, Closure*) override { return nothing_else<TaskHandle>(); }
  TaskHandle RunAfter(Duration, Job) override { return nothing_else<TaskHandle>(); }
  bool Cancel(TaskHandle) override { return nothing_else<bool>(); }
  absl::StatusOr<std::unique_ptr<Listener>> CreateListener(Listener::AcceptCallback,
                                                           absl::AnyInvocable<void(absl::Status)>,
                                                           const EndpointConfig&,
                                                           std::unique_ptr<MemoryAllocatorFactory>) override {
    return nothing_else<std::unique_ptr<Listener>>();
  }
  ConnectionHandle Connect(OnConnectCallback, const ResolvedAddress&, const EndpointConfig&, MemoryAllocator,
                           Duration) override {
    return nothing_else<ConnectionHandle>();
  }
  bool CancelConnect(ConnectionHandle) override { return nothing_else<bool>(); }
  bool IsWorkerThread() override { return nothing_else<bool>(); }
  std::unique_ptr<DNSResolver> GetDNSResolver(const DNSResolver::ResolverOptions&) override {
    return nothing_else<std::unique_ptr<DNSResolver>>();
  }

 private:
  bool run_one(bool wait) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      if (wait) something_to_do_.wait(lock, [this] { return ended_ || !jobs_.empty(); });
      if (jobs_.empty()) return false;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
    return true;
  }
  template <class T>
  static T nothing_else() {
    ADD_FAILURE() << "RunAfter() and Cancel() need no more than Run() of this engine";
    std::terminate();
  }

  std::mutex mutex_;
  std::condition_variable something_to_do_;
  std::deque<Job> jobs_;
  bool ended_ = false;
  std::vector<std::jthread> threads_;  // last: they use the rest
};

/// What became of closures.
struct Fates {
  std::atomic<int> ran = 0, destroyed = 0;
};

/// A closure that can only be moved, and counts.
class Counted {
 public:
  explicit Counted(Fates& fates) : fates_(&fates) {}
  Counted(Counted&& other) noexcept : fates_(std::exchange(other.fates_, nullptr)) {}
  Counted& operator=(Counted&&) = delete;
  ~Counted() {
    if (fates_ != nullptr) ++fates_->destroyed;
  }
  void operator()() const { ++fates_->ran; }

 private:
  Fates* fates_;
};

class CountedByPointer : public EventEngine::Closure {
 public:
  explicit CountedByPointer(Fates& fates) : fates_(fates) {}
  ~CountedByPointer() override { ++fates_.destroyed; }
  void Run() override { ++fates_.ran; }

 private:
  Fates& fates_;
};

/// The test lets time pass, and runs the closures.
class WheelEventEngineByHand : public ::testing::Test {
 protected:
  int pass(std::chrono::nanoseconds time) {
    timer_->advance(time);
    return rest_->run_all();
  }

  Fates fates_;
  const std::shared_ptr<hwt::ManualTimer> timer_ = std::make_shared<hwt::ManualTimer>(1ms);
  const std::shared_ptr<Rest> rest_ = std::make_shared<Rest>(0);
  std::unique_ptr<WheelEventEngine> engine_ = std::make_unique<WheelEventEngine>(timer_, rest_);
};

TEST_F(WheelEventEngineByHand, RunsAndDestroysAClosureWhenTheTimeHasComeAndDoesNotDestroyAPointer) {
  engine_->RunAfter(10ms, Counted(fates_));
  CountedByPointer closure(fates_);
  engine_->RunAfter(10ms, &closure);
  EXPECT_EQ(pass(9ms), 0);
  EXPECT_EQ(pass(1ms), 2);
  EXPECT_EQ(fates_.ran, 2);
  EXPECT_EQ(fates_.destroyed, 1);
  EXPECT_EQ(pass(1h), 0);
}

TEST_F(WheelEventEngineByHand, NoTimeAtAllIsSoonAndNotInTheCall) {
  for (const EventEngine::Duration when : {0ns, -1ns, EventEngine::Duration::min()}) {
    fates_.ran = 0;
    engine_->RunAfter(when, Counted(fates_));
    EXPECT_EQ(rest_->run_all(), 0);
    EXPECT_EQ(fates_.ran, 0);
    EXPECT_EQ(pass(1ms), 1);
    EXPECT_EQ(fates_.ran, 1);
  }
}

TEST_F(WheelEventEngineByHand, TheLongestTimeIsNever) {
  const Handle handle = engine_->RunAfter(EventEngine::Duration::max(), Counted(fates_));
  EXPECT_EQ(pass(hwt::test::kFar * 24 * 365 * 100), 0);
  EXPECT_TRUE(engine_->Cancel(handle));
}

TEST_F(WheelEventEngineByHand, ACancelledClosureNeverRunsAndIsDestroyedAtOnce) {
  const Handle handle = engine_->RunAfter(1ms, Counted(fates_));
  CountedByPointer closure(fates_);
  const Handle by_pointer = engine_->RunAfter(1ms, &closure);
  EXPECT_TRUE(engine_->Cancel(handle));
  EXPECT_EQ(fates_.destroyed, 1);
  EXPECT_TRUE(engine_->Cancel(by_pointer));
  EXPECT_EQ(fates_.destroyed, 1) << "what is given by a pointer stays the caller's";
  EXPECT_EQ(pass(1h), 0);
  EXPECT_EQ(fates_.ran, 0);
  EXPECT_EQ(timer_->pending_timeouts(), 0);
}

TEST_F(WheelEventEngineByHand, CancelIsTrueOnceForAClosureThatWaitsAndForNoOtherHandle) {
  const Handle handle = engine_->RunAfter(1ms, Counted(fates_));
  const auto [low, high] = handle.keys;
  for (const Handle& nobodys : {Handle{{0, 0}}, Handle{{-1, -1}}, Handle{{low + 1, high}}, Handle{{low, high + 1}}}) {
    EXPECT_FALSE(engine_->Cancel(nobodys));
  }
  EXPECT_TRUE(engine_->Cancel(handle));
  EXPECT_FALSE(engine_->Cancel(handle));
  const Handle due = engine_->RunAfter(1ms, Counted(fates_));
  timer_->advance(1ms);
  EXPECT_FALSE(engine_->Cancel(due)) << "it is about to run";
  EXPECT_EQ(rest_->run_all(), 1);
  EXPECT_EQ(fates_.ran, 1);
  EXPECT_FALSE(engine_->Cancel(due)) << "it has run";
}

TEST_F(WheelEventEngineByHand, AHandleMeansNothingToAnotherEngine) {
  WheelEventEngine other(std::make_shared<hwt::ManualTimer>(1ms), rest_);
  const Handle handle = engine_->RunAfter(1ms, Counted(fates_));
  const Handle others = other.RunAfter(1ms, Counted(fates_));
  EXPECT_FALSE(other.Cancel(handle));
  EXPECT_FALSE(engine_->Cancel(others));
  EXPECT_TRUE(engine_->Cancel(handle));
  EXPECT_TRUE(other.Cancel(others));
}

TEST_F(WheelEventEngineByHand, HandlesAreDifferentAndNeverThoseThatStandForNone) {
  std::set<std::pair<std::intptr_t, std::intptr_t>> seen{{0, 0}, {-1, -1}};
  for (int i = 0; i < 1000; ++i) {
    const Handle handle = engine_->RunAfter(1ms, Counted(fates_));
    EXPECT_TRUE(seen.emplace(handle.keys[0], handle.keys[1]).second);
    EXPECT_TRUE(engine_->Cancel(handle));  // so that its place is used again
  }
}

TEST_F(WheelEventEngineByHand, AClosureMayRunAnotherLaterAndCancelAnyAndDeleteItself) {
  struct Again : EventEngine::Closure {
    Again(WheelEventEngine& engine, Fates& fates) : engine(engine), fates(fates) {}
    ~Again() override { ++fates.destroyed; }
    void Run() override {
      ++fates.ran;
      EXPECT_FALSE(engine.Cancel(self));
      EXPECT_TRUE(engine.Cancel(victim));
      if (fates.ran == 3) {
        delete this;
        return;
      }
      start();
    }
    void start() {
      victim = engine.RunAfter(1s, [] { FAIL() << "it was cancelled"; });
      self = engine.RunAfter(1ms, this);
    }

    WheelEventEngine& engine;
    Fates& fates;
    Handle self{}, victim{};
  };
  (new Again(*engine_, fates_))->start();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pass(1ms), 1);
  EXPECT_EQ(fates_.ran, 3);
  EXPECT_EQ(fates_.destroyed, 1);
  EXPECT_EQ(timer_->pending_timeouts(), 0);
}

TEST_F(WheelEventEngineByHand, TheDestructorOfACancelledClosureMayUseTheEngine) {
  struct Last {
    explicit Last(WheelEventEngine& engine, Fates& fates) : engine(&engine), fates(fates) {}
    Last(Last&& other) noexcept : engine(std::exchange(other.engine, nullptr)), fates(other.fates) {}
    Last& operator=(Last&&) = delete;
    ~Last() {
      if (engine != nullptr) engine->RunAfter(1ms, Counted(fates));
    }
    void operator()() const {}
    WheelEventEngine* engine;
    Fates& fates;
  };
  EXPECT_TRUE(engine_->Cancel(engine_->RunAfter(1h, Last(*engine_, fates_))));
  EXPECT_EQ(pass(1ms), 1);
  EXPECT_EQ(fates_.ran, 1);
}

TEST_F(WheelEventEngineByHand, AClosureThatIsLeftAtTheEndIsDestroyedAndDoesNotRun) {
  engine_->RunAfter(1ms, Counted(fates_));
  CountedByPointer closure(fates_);
  engine_->RunAfter(1ms, &closure);
  engine_.reset();
  EXPECT_EQ(fates_.destroyed, 1);
  EXPECT_EQ(fates_.ran, 0);
  EXPECT_EQ(rest_->run_all(), 0);
  EXPECT_EQ(timer_->pending_timeouts(), 0);
}

TEST_F(WheelEventEngineByHand, ARefusalIsThrownAndTheClosureIsDestroyed) {
  timer_->stop();
  EXPECT_THROW(engine_->RunAfter(1ms, Counted(fates_)), hwt::IllegalState);
  EXPECT_EQ(fates_.destroyed, 1);
}

/// On threads, and a timer with a worker.
class WheelEventEngineOnThreads : public ::testing::Test {
 protected:
  Fates fates_;
  const std::shared_ptr<hwt::HashedWheelTimer> timer_ = std::make_shared<hwt::HashedWheelTimer>(1ms);
  const std::shared_ptr<Rest> rest_ = std::make_shared<Rest>(2);
  std::unique_ptr<WheelEventEngine> engine_ = std::make_unique<WheelEventEngine>(timer_, rest_);
};

TEST_F(WheelEventEngineOnThreads, AClosureThatBlocksDoesNotHoldUpTheTimer) {
  Latch blocked, free, ended;
  engine_->RunAfter(0ns, [&] {
    blocked.count_down();
    EXPECT_TRUE(free.wait());
    ended.count_down();
  });
  ASSERT_TRUE(blocked.wait());
  EXPECT_TRUE(ran_in_task(*timer_, [] {}));
  Latch other;
  engine_->RunAfter(0ns, [&] { other.count_down(); });
  EXPECT_TRUE(other.wait());
  free.count_down();
  EXPECT_TRUE(ended.wait());
}

TEST_F(WheelEventEngineOnThreads, NoneIsEarly) {
  constexpr int kCount = 200;
  std::atomic<int> early = 0;
  Latch all(kCount);
  for (int i = 0; i < kCount; ++i) {
    const auto due = steady_clock::now() + i * 100us;
    engine_->RunAfter(i * 100us, [&, due] {
      if (steady_clock::now() < due) ++early;
      all.count_down();
    });
  }
  EXPECT_TRUE(all.wait());
  EXPECT_EQ(early, 0);
}

/// Lets a closure own the engine alone. The closure destroys the engine after RunAfter() has returned.
void destroy_in_closure(std::shared_ptr<WheelEventEngine> engine) {
  Latch returned, gone;
  WheelEventEngine& used = *engine;
  used.RunAfter(0ns, [&, engine = std::move(engine)]() mutable {
    EXPECT_TRUE(returned.wait());
    engine.reset();
    gone.count_down();
  });
  returned.count_down();
  ASSERT_TRUE(gone.wait());
}

TEST_F(WheelEventEngineOnThreads, AClosureMayOwnTheEngine) {
  for (int i = 0; i < 300; ++i) {
    destroy_in_closure(std::make_shared<WheelEventEngine>(std::make_shared<hwt::HashedWheelTimer>(1ms), rest_));
  }
}

/// Threads make closures that are due at once or soon, and cancel their own and those of others. Each one either runs
/// or is cancelled, once, and is destroyed.
void hunt(WheelEventEngine& engine, hwt::Timer& timer) {
  constexpr int kThreads = 3;
  constexpr std::size_t kHandles = 64;
  constexpr int kEach = 20'000;
  Fates fates;
  std::atomic<int> cancelled = 0;
  std::mutex mutex;
  std::vector<Handle> handles(kHandles, Handle{{0, 0}});
  run_together(kThreads, [&](int thread) {
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    for (int i = 0; i < kEach; ++i) {
      const Handle handle = engine.RunAfter(std::chrono::microseconds(random() % 2000), Counted(fates));
      Handle victim;
      {
        const std::lock_guard lock(mutex);
        victim = std::exchange(handles[random() % kHandles], handle);
      }
      if (random() % 4 != 0 && engine.Cancel(victim)) ++cancelled;
      if (random() % 8 == 0 && engine.Cancel(handle)) ++cancelled;
    }
  });
  for (const Handle& handle : handles)
    if (engine.Cancel(handle)) ++cancelled;
  EXPECT_TRUE(eventually([&] { return fates.destroyed == kThreads * kEach; }));
  EXPECT_EQ(fates.ran + cancelled, kThreads * kEach);
  EXPECT_GT(fates.ran, 0);
  EXPECT_GT(cancelled, 0);
  EXPECT_TRUE(none_pending(timer));
  ::testing::Test::RecordProperty("ran", fates.ran);
}

TEST_F(WheelEventEngineOnThreads, EachClosureRunsOrIsCancelledOnce) { hunt(*engine_, *timer_); }

/// Expiry and Cancel() of the same closure, at the same moment.
TEST_F(WheelEventEngineOnThreads, ExpiryAgainstCancel) {
  constexpr int kRounds = 3000;
  int cancelled = 0;
  for (int i = 0; i < kRounds; ++i) {
    const Handle handle = engine_->RunAfter(0ns, Counted(fates_));
    std::this_thread::sleep_for(std::chrono::microseconds(i % 8 * 200));
    if (engine_->Cancel(handle)) ++cancelled;
  }
  EXPECT_TRUE(eventually([&] { return fates_.destroyed == kRounds; }));
  EXPECT_EQ(fates_.ran + cancelled, kRounds);
  RecordProperty("cancelled", cancelled);
}

#if !HWT_TEST_THREAD_SANITIZER

/// On gRPC's own engine, whose threads ThreadSanitizer does not see into.
class WheelEventEngineOfGrpc : public ::testing::Test {
 protected:
  void SetUp() override { grpc_init(); }
  void TearDown() override { grpc_shutdown(); }
};

TEST_F(WheelEventEngineOfGrpc, EachClosureRunsOrIsCancelledOnce) {
  const auto timer = std::make_shared<hwt::HashedWheelTimer>(1ms);
  WheelEventEngine engine(timer, grpc_event_engine::experimental::CreateEventEngine());
  hunt(engine, *timer);
}

TEST_F(WheelEventEngineOfGrpc, AClosureMayOwnTheEngineAndAllThatIsBehindIt) {
  for (int i = 0; i < 20; ++i) {
    destroy_in_closure(std::make_shared<WheelEventEngine>(std::make_shared<hwt::HashedWheelTimer>(1ms),
                                                          grpc_event_engine::experimental::CreateEventEngine()));
  }
}

#endif

}  // namespace
}  // namespace engine
