// How long a task and its captures are kept: docs/guide.md, "Task lifetime". And what can be a task.

#include "tests/support/test_support.h"

namespace hwt::test {
namespace {

using Resource = std::shared_ptr<int>;

Resource make_resource() { return std::make_shared<int>(7); }
bool is_released(const Resource& resource) { return resource.use_count() == 1; }

// A plain callable is destroyed as soon as it can never run again.

TEST(TaskLifetime, ACallableIsDestroyedAfterItRanOrThrew) {
  for (const bool throws : {false, true}) {
    const Resource resource = make_resource();
    ErrorLog log;
    HashedWheelTimer timer{{.tick_duration = 1ms, .on_task_error = log.handler()}};
    const Timeout kept = after(timer, 0ms, [resource, throws] {
      if (throws) throw 1;
    });
    EXPECT_TRUE(eventually([&] { return is_released(resource); })) << "though the handle is still held";
    EXPECT_TRUE(kept.is_expired());
  }
}

TEST(TaskLifetime, TheTaskIsValidUntilThen) {
  int calls = 0;
  HashedWheelTimer timer;
  Timeout timeout = timer.new_timeout([&] { ++calls; }, kFar);
  timeout.task().run(timeout);
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(timeout.cancel()) << "calling the task by hand is not expiry";
}

TEST(TaskLifetime, ARefusedCallableIsDestroyedOrNeverTaken) {
  const Resource resource = make_resource();
  HashedWheelTimer timer{{.max_pending_timeouts = 1}};
  timer.new_timeout([] {}, kFar);
  EXPECT_THROW(timer.new_timeout([resource] {}, kFar), RejectedExecution);
  EXPECT_TRUE(is_released(resource));
  auto callable = [resource] {};
  EXPECT_FALSE(timer.try_new_timeout(std::move(callable), kFar));
  EXPECT_EQ(resource.use_count(), 2) << "a refused callable is not moved from";
  timer.stop();
  EXPECT_THROW(timer.new_timeout([resource] {}, kFar), IllegalState);
  EXPECT_EQ(resource.use_count(), 2);
}

// A shared TimerTask is held until the last handle goes, and at least until its cancelled() has run.

TEST(TaskLifetime, ASharedTaskIsHeldUntilTheLastHandleGoes) {
  HashedWheelTimer timer(1ms);
  auto ran = std::make_shared<RecordingTask>();
  auto cancelled = std::make_shared<RecordingTask>();
  Timeout of_ran = timer.new_timeout(ran, 0ms);
  Timeout of_cancelled = timer.new_timeout(cancelled, kFar);
  of_cancelled.cancel();
  ASSERT_TRUE(ran->ran.wait() && cancelled->was_cancelled.wait());
  await_transfer(timer);
  Timeout copy = of_ran;
  for (Timeout* timeout : {&of_ran, &of_cancelled}) *timeout = Timeout();
  EXPECT_EQ(&copy.task(), ran.get());
  EXPECT_EQ(ran.use_count(), 2);
  EXPECT_EQ(cancelled.use_count(), 1);
  copy = Timeout();
  EXPECT_EQ(ran.use_count(), 1);
}

TEST(TaskLifetime, ASharedTaskIsHeldWithoutAHandleUntilItOrItsCancelledHasRun) {
  for (const bool cancels : {false, true}) {
    auto task = std::make_shared<RecordingTask>();
    const std::weak_ptr<RecordingTask> watch = task;
    RecordingTask& reference = *task;
    HashedWheelTimer timer(1ms);
    {
      const Gate gate(timer);
      Timeout timeout = timer.new_timeout(std::move(task), cancels ? std::chrono::milliseconds(kFar) : 0ms);
      EXPECT_EQ(cancels && timeout.cancel(), cancels);
      timeout = {};
      EXPECT_FALSE(watch.expired());
      EXPECT_EQ(reference.cancellations + reference.runs, 0) << "the worker is busy";
    }
    EXPECT_TRUE(eventually([&] { return watch.expired(); }));
  }
}

TEST(TaskLifetime, TheDestructorEndsTheWorkerCancelsAndKeepsSharedTasksForTheirHandles) {
  CountingFactory workers;
  const auto held = std::make_shared<RecordingTask>();
  const auto dropped = std::make_shared<RecordingTask>();
  Timeout handle, plain;
  {
    HashedWheelTimer timer{{.tick_duration = 1ms, .thread_factory = workers.factory()}};
    plain = timer.new_timeout(must_not_run, kFar);
    handle = timer.new_timeout(held, kFar);
    timer.new_timeout(dropped, kFar);
  }
  EXPECT_TRUE(workers.wait_until_ended());
  EXPECT_TRUE(plain.is_cancelled() && handle.is_cancelled());
  EXPECT_FALSE(plain.cancel() || handle.cancel());
  EXPECT_EQ(held->cancellations, 1);
  EXPECT_EQ(dropped->cancellations, 1);
  EXPECT_EQ(held->runs + dropped->runs, 0);
  EXPECT_EQ(held.use_count(), 2);
  EXPECT_EQ(dropped.use_count(), 1);
  EXPECT_EQ(&handle.task(), held.get());
}

// A timeout returned by stop() keeps its task until its last handle goes, so that the caller can run it.

TEST(TaskLifetime, ATimeoutThatStopReturnsCanBeRun) {
  for (const bool timer_is_gone : {false, true}) {
    const Resource resource = make_resource();
    int runs = 0;
    const auto shared = std::make_shared<RecordingTask>();
    auto timer = std::make_unique<HashedWheelTimer>(1ms);
    timer->new_timeout([resource, &runs] { runs += *resource; }, kFar);
    await_transfer(*timer);
    timer->new_timeout([resource, &runs](Timeout& self) { runs += self.is_cancelled() ? 100 : 0; }, kFar);
    timer->new_timeout(shared, kFar);
    std::vector<Timeout> unprocessed = timer->stop();
    if (timer_is_gone) timer.reset();
    ASSERT_EQ(unprocessed.size(), 3U);
    for (Timeout& timeout : unprocessed) timeout.task().run(timeout);
    EXPECT_EQ(runs, 107);
    EXPECT_EQ(shared->runs, 1);
    EXPECT_FALSE(is_released(resource));
    unprocessed.clear();
    EXPECT_TRUE(is_released(resource));
    EXPECT_EQ(shared.use_count(), 1);
  }
}

struct Session {
  Timeout timeout;
};

/// Its timeout is owned by nothing but its own task.
std::weak_ptr<Session> start_session(Timer& timer, std::chrono::nanoseconds delay) {
  const auto session = std::make_shared<Session>();
  session->timeout = timer.new_timeout([session] {}, delay);
  return session;
}

TEST(TaskLifetime, ACallableThatOwnsItsOwnHandleGoesAfterItRanOrWithTheTimer) {
  std::weak_ptr<Session> watch;
  {
    HashedWheelTimer timer(1ms);
    {
      const Gate gate(timer);  // the task does not run before the session has its handle
      watch = start_session(timer, 0ms);
    }
    EXPECT_TRUE(eventually([&] { return watch.expired(); }));
    watch = start_session(timer, kFar);
    await_transfer(timer);
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

TEST(TaskLifetime, ACallableMayOwnItsTimerAndExpire) {
  CountingFactory workers;
  auto timer = std::make_shared<HashedWheelTimer>(Options{.tick_duration = 1ms, .thread_factory = workers.factory()});
  const Timeout timeout = timer->new_timeout([timer] {}, 5ms);
  timer.reset();
  ASSERT_TRUE(workers.wait_until_ended());
  EXPECT_TRUE(timeout.is_expired());
  EXPECT_EQ(timeout.timer(), nullptr);
}

TEST(TaskLifetime, ACallableMayOwnItsTimerAndBeReturnedByStop) {
  auto timer = std::make_shared<HashedWheelTimer>(1ms);
  const Timeout other = timer->new_timeout([] {}, kFar);
  timer->new_timeout([timer] {}, kFar);
  std::vector<Timeout> unprocessed = timer->stop();
  timer.reset();
  EXPECT_NE(other.timer(), nullptr);
  unprocessed.clear();
  EXPECT_EQ(other.timer(), nullptr);
}

TEST(TaskLifetime, ATaskMayReplaceItsHandle) {
  const auto next = std::make_shared<RecordingTask>();
  const Resource resource = make_resource();
  HashedWheelTimer timer(1ms);
  ASSERT_TRUE(ran_in_task(timer, [&, resource](Timeout& self) { self = timer.new_timeout(next, kFar); }));
  EXPECT_EQ(timer.stop().size(), 1U);
  EXPECT_TRUE(is_released(resource));
  EXPECT_EQ(next.use_count(), 1) << "the handle was dropped with the task's argument";
}

TEST(TaskLifetime, ATaskMayMoveOrDropItsHandle) {
  const Resource resource = make_resource();
  Timeout taken;
  Latch ran;
  HashedWheelTimer timer(1ms);
  const Timeout first = after(timer, 0ms, [&, resource](Timeout& self) {
    taken = std::move(self);
    ran.count_down();
  });
  ASSERT_TRUE(ran_in_task(timer, [&, resource](Timeout& self) {
    self = Timeout();
    EXPECT_EQ(*resource, 7);
  }));
  ASSERT_TRUE(ran.wait());
  timer.stop();
  EXPECT_EQ(taken, first);
  EXPECT_TRUE(is_released(resource));
}

std::atomic<int> function_calls = 0;
void plain_function() { ++function_calls; }
void function_of_timeout(Timeout& timeout) { function_calls += timeout.is_expired() ? 10 : 0; }

TEST(Callables, FunctionsAndFunctionPointers) {
  function_calls = 0;
  HashedWheelTimer timer(1ms);
  timer.new_timeout(&plain_function, 0ms);
  timer.new_timeout(&function_of_timeout, 0ms);
  timer.new_timeout(plain_function, 0ms);
  timer.new_timeout(function_of_timeout, 0ms);
  EXPECT_TRUE(eventually([] { return function_calls == 22; }));
}

TEST(Callables, WithAndWithoutTheTimeout) {
  struct Both {
    std::atomic<int>* with;
    std::atomic<int>* without;
    void operator()(Timeout&) const { ++*with; }
    void operator()() const { ++*without; }
  };
  std::atomic<int> with = 0;
  std::atomic<int> without = 0;
  Latch done(4);
  HashedWheelTimer timer(1ms);
  timer.new_timeout(Both{&with, &without}, 0ms);
  timer.new_timeout([&](Timeout&) { done.count_down(); }, 1ms);
  timer.new_timeout([&](const Timeout&) { done.count_down(); }, 1ms);
  timer.new_timeout([&](Timeout) { done.count_down(); }, 1ms);
  timer.new_timeout([&](auto&&) { done.count_down(); }, 1ms);
  ASSERT_TRUE(done.wait());
  EXPECT_EQ(with, 1) << "f(Timeout&) is preferred";
  EXPECT_EQ(without, 0);
}

TEST(Callables, ResultsAreIgnoredAndStateIsMutable) {
  Latch done(3);
  HashedWheelTimer timer(1ms);
  after(timer, 0ms, [&] {
    done.count_down();
    return std::string("nobody reads this");
  });
  timer.new_timeout([&, calls = 0]() mutable { ++calls == 1 ? done.count_down() : throw calls; }, 0ms);
  const std::function<void()> function = [&] { done.count_down(); };
  timer.new_timeout(function, 0ms);
  EXPECT_TRUE(done.wait());
}

TEST(Callables, AnLvalueIsCopiedAnRvalueMoved) {
  const Resource resource = make_resource();
  HashedWheelTimer timer;
  auto callable = [captured = Resource(resource)] {};  // [resource] would be const, which cannot be moved from
  Timeout of_copy = timer.new_timeout(callable, kFar);
  EXPECT_EQ(resource.use_count(), 3);
  Timeout of_moved = timer.new_timeout(std::move(callable), kFar);
  EXPECT_EQ(resource.use_count(), 3);
  EXPECT_TRUE(of_copy.cancel() && of_moved.cancel());
  EXPECT_TRUE(is_released(resource));
}

template <std::size_t size, std::size_t alignment>
struct alignas(alignment) Sized {
  explicit Sized(Latch& done, std::atomic<int>& wrong) : done_(&done), wrong_(&wrong) { bytes_.fill(std::byte{0x5A}); }
  void operator()() const {
    for (const std::byte byte : bytes_) *wrong_ += byte == std::byte{0x5A} ? 0 : 1;
    *wrong_ += reinterpret_cast<std::uintptr_t>(this) % alignment == 0 ? 0 : 1;
    done_->count_down();
  }

 private:
  Latch* done_;
  std::atomic<int>* wrong_;
  Resource resource_ = make_resource();
  std::array<std::byte, size> bytes_;
};

TEST(Callables, OfEverySizeAndAlignment) {
  Latch done(8);
  std::atomic<int> wrong = 0;
  HashedWheelTimer timer(1ms);
  const auto schedule = [&](auto... tasks) { (timer.new_timeout(tasks, 0ms), ...); };
  schedule(Sized<1, 8>(done, wrong), Sized<64, 8>(done, wrong), Sized<16, 16>(done, wrong), Sized<16, 32>(done, wrong),
           Sized<64, 64>(done, wrong), Sized<100, 256>(done, wrong), Sized<10'000, 8>(done, wrong),
           Sized<10'000, 4096>(done, wrong));
  ASSERT_TRUE(done.wait());
  EXPECT_EQ(wrong, 0);
}

/// Counts its instances, so that none is forgotten or destroyed twice.
template <std::size_t padding>
struct Counted {
  static inline std::atomic<int> alive = 0;
  Counted() { ++alive; }
  Counted(const Counted&) { ++alive; }
  ~Counted() { --alive; }
  void operator()() const {}
  std::array<std::byte, padding> bytes{};
};

template <std::size_t padding>
void expect_each_destroyed_once() {
  Timeout cancelled, returned, ran, left, left_in_queue;
  {
    HashedWheelTimer timer(1ms);
    cancelled = timer.new_timeout(Counted<padding>(), kFar);
    EXPECT_EQ(Counted<padding>::alive, 1);
    EXPECT_TRUE(cancelled.cancel());
    EXPECT_EQ(Counted<padding>::alive, 0);
    ran = timer.new_timeout(Counted<padding>(), 0ms);
    EXPECT_TRUE(eventually([] { return Counted<padding>::alive == 0; }));
    left = timer.new_timeout(Counted<padding>(), kFar);
    await_transfer(timer);
    left_in_queue = timer.new_timeout(Counted<padding>(), kFar);
  }
  EXPECT_EQ(Counted<padding>::alive, 0) << "though handles are held";
  EXPECT_TRUE(left.is_cancelled() && left_in_queue.is_cancelled());
  {
    HashedWheelTimer timer(1ms);
    timer.new_timeout(Counted<padding>(), kFar);
    returned = timer.stop().front();
  }
  EXPECT_EQ(Counted<padding>::alive, 1);
  returned = Timeout();
  EXPECT_EQ(Counted<padding>::alive, 0);
}

TEST(Callables, AreDestroyedExactlyOnce) {
  expect_each_destroyed_once<1>();
  expect_each_destroyed_once<24>();
  expect_each_destroyed_once<25>();
  expect_each_destroyed_once<1000>();
}

}  // namespace
}  // namespace hwt::test
