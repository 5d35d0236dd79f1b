// Lack of memory anywhere leaves the timer as it was and reaches the caller as std::bad_alloc; on the worker it loses
// nothing (promise 12). Each allocation of each operation is made to fail in its turn.

#include "hashed_wheel_timer/batch_executor.h"
#include "hashed_wheel_timer/internal/memory/slab.h"
#include "hashed_wheel_timer/repeated_timer.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/any_timer.h"
#include "tests/support/when_copied.h"

namespace hwt::test {
namespace {

std::shared_ptr<TimerTask> unowned(TimerTask& task) { return {std::shared_ptr<TimerTask>(), &task}; }

/// Calls f() on a new thread, which has no memory.
template <class F>
void on_a_thread_without_memory(F f) {
  std::thread([&] { without_memory(f); }).join();
}

bool has_counted_nothing(const TimerStats& stats) {
  return stats.scheduled + stats.rejected == 0 && is_balanced(stats);
}

/// The timer works: it schedules, runs, cancels.
template <class T>
void expect_usable(T& timer) {
  const std::int64_t pending = timer.pending_timeouts();
  settle(timer);
  EXPECT_TRUE(timer.new_timeout(must_not_run, kFar).cancel());
  EXPECT_EQ(timer.pending_timeouts(), pending);
}

/// Options whose functions allocate when they are copied.
Options options_with_large_functions() {
  const auto large = [](auto f) {
    return [f, pad = std::array<char, 100>{}](auto&&... arguments) {
      static_cast<void>(pad);
      return f(std::forward<decltype(arguments)>(arguments)...);
    };
  };
  return {.tick_duration = 1ms,
          .executor = large([](const std::function<void()>& job) { job(); }),
          .thread_factory = large([](std::function<void()> body) { return std::thread(std::move(body)); }),
          .on_task_error = large([](const std::exception_ptr&, const Timeout&) {})};
}

TEST(Allocation, FailsInTheConstructorAndInStart) {
  const Options options = options_with_large_functions();
  {
    HashedWheelTimer warm_up(options);
  }
  const std::int64_t before = bytes_in_use;
  for (const bool starts : {false, true}) {
    SCOPED_TRACE(starts ? "in start()" : "in the constructor");
    int refused = 0;
    for_each_allocation([&](std::int64_t n) {
      std::optional<HashedWheelTimer> timer;
      if (starts) timer.emplace(options);
      const std::int64_t before_this = bytes_in_use;
      const auto [struck, failed] = with_failing(n, [&] { starts ? timer->start() : void(timer.emplace(options)); });
      // The queues can do without some of the constructor's allocations.
      EXPECT_TRUE(struck ? failed || !starts : !failed);
      EXPECT_EQ(timer.has_value(), starts || !failed);
      refused += failed ? 1 : 0;
      if (timer) {
        EXPECT_TRUE(has_counted_nothing(timer->stats()));
        timer->start();
        expect_usable(*timer);
      } else {
        EXPECT_EQ(bytes_in_use, before_this);
      }
      return struck;
    });
    EXPECT_GE(refused, starts ? 2 : 5) << "the Launch and the thread; or three functions, the core, the worker";
  }
  // A thread keeps a record of each timer that it has used, until it needs the room.
  EXPECT_LE(bytes_in_use - before, 4096);
}

/// The first timeout of a thread takes the most: its place among the producers, its nodes, its part of the queue.
/// `make` makes a task that opens the latch.
template <class Make>
void expect_failures_on_a_new_thread(Make make) {
  for (const bool throws : {true, false}) {
    SCOPED_TRACE(throws ? "throws" : "returns");
    for (const std::int64_t max_pending : {-1, 5}) {
      int refused = 0;
      for_each_allocation([&](std::int64_t n) {
        const auto latch = std::make_shared<Latch>();
        const auto task = make(latch);
        HashedWheelTimer timer({.tick_duration = 1ms, .max_pending_timeouts = max_pending});
        timer.start();
        const auto schedule = [&](std::chrono::nanoseconds delay) -> Timeout {
          const When when = max_pending > 0 ? When(timer.now() + delay) : When(delay);
          return throws ? timer.new_timeout(task, when) : timer.try_new_timeout(task, when);
        };
        const long alive = latch.use_count();
        Outcome outcome;
        std::thread([&] {
          Timeout timeout;
          outcome = with_failing(n, [&] { timeout = schedule(kFar); });
          EXPECT_TRUE(outcome.bad_alloc == !timeout || !throws) << "try_new_timeout() may pass on what a copy throws";
          EXPECT_TRUE(outcome.struck || timeout);
          EXPECT_EQ(timer.pending_timeouts(), timeout ? 1 : 0);
          if (!timeout) {
            ++refused;
            EXPECT_TRUE(has_counted_nothing(timer.stats()));
            EXPECT_EQ(latch.use_count(), alive) << "the refused task lives on";
          }
          EXPECT_EQ(timeout.cancel(), static_cast<bool>(timeout));
          // This thread succeeds once there is memory, and has all of the limit to itself.
          std::vector<Timeout> timeouts = far_timeouts(timer, 4);
          EXPECT_TRUE(schedule(0ns));
          EXPECT_TRUE(latch->wait());
          cancel_all(timeouts);
        }).join();
        EXPECT_TRUE(is_balanced(timer.stats()));
        EXPECT_EQ(timer.pending_timeouts(), 0);
        EXPECT_TRUE(timer.stop().empty());
        return outcome.struck;
      });
      EXPECT_GE(refused, 4) << "the place in the list, the producer, its nodes, its block of the queue";
    }
  }
}

TEST(NewTimeout, FailsOnANewThreadWhateverItsTask) {
  using Opened = std::shared_ptr<Latch>;
  struct Task : TimerTask {
    explicit Task(Opened its_latch) : latch(std::move(its_latch)) {}
    void run(Timeout&) override { latch->count_down(); }
    const Opened latch;
  };
  const auto large = [](const Opened& latch) {
    return [latch, pad = std::array<char, 64>{}] { static_cast<void>(pad), latch->count_down(); };
  };
  expect_failures_on_a_new_thread([](const Opened& latch) { return [latch] { latch->count_down(); }; });
  expect_failures_on_a_new_thread(large);
  expect_failures_on_a_new_thread([&](const Opened& latch) { return std::function<void()>(large(latch)); });
  expect_failures_on_a_new_thread([](const Opened& latch) { return std::make_shared<Task>(latch); });
}

/// Copying the callable throws, or finds no memory. Or the queue has no memory for the entry.
TEST(WithoutMemory, ARefusedTimeoutLeavesItsNodeToTheNext) {
  constexpr int kMost = 500;  // fewer than the nodes of a slab
  const std::function<void()> refuse = [] { throw 1; };
  const WhenCopied throws(refuse);
  ManualTimer timer;
  timer.new_timeout([] {}, kFar);
  const Growth growth;
  for (int i = 0; i < 5'000; ++i) {
    EXPECT_THROW(timer.new_timeout(throws, kFar), int);
    const auto store = [&] { timer.new_timeout([large = std::array<char, 80>{}] { (void)large; }, kFar); };
    EXPECT_TRUE(with_failing(0, store).bad_alloc);
  }
  int added = 1;
  without_memory([&] {
    while (added < kMost && timer.try_add([] {}, kFar)) ++added;
    EXPECT_THROW(timer.add([] {}, kFar), std::bad_alloc);
    for (int i = 0; i < 2'000; ++i) EXPECT_FALSE(timer.try_add([] {}, kFar));
  });
  EXPECT_TRUE(is_balanced(timer.stats(), added));
  for (; added < kMost; ++added) timer.add([] {}, kFar);
  EXPECT_LT(growth.now(), std::int64_t{internal::Slab::kBytes});
  EXPECT_EQ(timer.stop().size(), static_cast<std::size_t>(added));
}

void cancel_a_timeout_before_it_is_refused(bool keeps_handle) {
  ManualTimer timer({.tick_duration = 1ms, .trace_origins = true});
  const auto witness = std::make_shared<int>();
  std::vector<TimeoutId> accepted;
  accepted.reserve(1000);
  accepted.push_back(timer.add([witness] {}, kFar));
  std::atomic<std::uint64_t> found = 0;
  Timeout kept;
  std::jthread canceller([&](const std::stop_token& over) {
    for (; !over.stop_requested(); std::this_thread::yield()) {
      if (found == 0) continue;
      if (keeps_handle) kept = timer.find(TimeoutId::from_value(found));
      EXPECT_EQ(timer.cancel(TimeoutId::from_value(found)), CancelResult::Cancelled);
      found = 0;
    }
  });
  const auto cancel_unknown = [&](const TracedTimeout& timeout) {
    if (std::find(accepted.begin(), accepted.end(), timeout.id) != accepted.end()) return;
    for (found = timeout.id.value(); found != 0;) std::this_thread::yield();
  };
  TimeoutId last;
  {
    const AllocationObserver observer([&](std::size_t) { timer.for_each_pending(cancel_unknown); });
    const Shortage shortage(0, Shortage::kAll);
    while (timer.stats().cancelled == 0 && accepted.size() != accepted.capacity()) {
      last = timer.try_add([witness] {}, kFar);
      accepted.push_back(last);
    }
  }
  ASSERT_EQ(timer.stats().cancelled, 1) << "or this test could not fail";
  EXPECT_EQ(kept.is_cancelled(), keeps_handle);
  EXPECT_NE(timer.new_timeout([] {}, kFar), kept) << "its node is still in use";
  kept = {};
  EXPECT_TRUE(last);
  EXPECT_EQ(timer.cancel(last), CancelResult::Gone);
  EXPECT_EQ(witness.use_count(), static_cast<int>(accepted.size()));
  // Pending are all of `accepted` but the last, and the timeout that was scheduled just now.
  EXPECT_TRUE(is_balanced(timer.stats(), static_cast<std::int64_t>(accepted.size())));
  accepted.pop_back();
  for (const TimeoutId id : accepted) EXPECT_EQ(timer.cancel(id), CancelResult::Cancelled);
  EXPECT_EQ(witness.use_count(), 1);
}

/// A walk finds a timeout for which the queue has no memory, and cancels it before the producer can refuse it. Then it
/// was accepted: it ends once, and its memory does not keep the core.
TEST(Allocation, ATimeoutThatIsCancelledByItsIdBeforeItIsRefusedEndsOnce) {
  cancel_a_timeout_before_it_is_refused(false);
  const std::int64_t kept = bytes_in_use;  // by this thread
  for (int i = 0; i < 10; ++i) cancel_a_timeout_before_it_is_refused(i % 2 == 0);
  EXPECT_LT(bytes_in_use, kept + 5000) << "less than a core";
}

/// A thread that is new to the timer has cancelled or moved a timeout, and is held before it has memory of its own.
/// Meanwhile the timer is destroyed. Returns the bytes that are left.
template <class T>
std::int64_t left_by_a_thread_that_comes_late(bool moves) {
  const std::int64_t before = bytes_in_use;
  {
    auto timer = make_timer<T>();
    Timeout timeout = timer->new_timeout([] {}, kFar);
    settle(*timer);
    std::atomic<bool> held = false, destroyed = false;
    std::jthread late([&, timeout = std::move(timeout)]() mutable {
      const AllocationObserver observer([&](std::size_t) {
        for (held = true; !destroyed;) std::this_thread::yield();
      });
      moves ? timeout.reschedule(1s) : timeout.cancel();
      timeout = {};
    });
    EXPECT_TRUE(eventually([&] { return held.load(); }));
    timer.reset();
    destroyed = true;
  }
  return bytes_in_use - before;
}

TEST(Allocation, AHandleThatIsUsedWhileTheTimerEndsLeavesNothingBehind) {
  for (int i = 0; i < 3; ++i)
    for (const bool moves : {false, true}) {
      SCOPED_TRACE(moves ? "moves" : "does not move");
      for (const std::int64_t left : {left_by_a_thread_that_comes_late<HashedWheelTimer>(moves),
                                      left_by_a_thread_that_comes_late<ManualTimer>(moves)}) {
        // At first this thread keeps some memory for itself.
        EXPECT_TRUE(i == 0 || left < 5000) << left << ", less than a core";
      }
    }
}

/// The wheel has no memory for the new places of moved timeouts. More have moved than the 256 recheck requests that the
/// worker can keep for later.
TEST(Allocation, NoMoveIsLostWhileTheWheelHasNoMemory) {
  constexpr int kMoved = 1000;
  ManualTimer timer(1ms);
  int ran = 0;
  std::vector<Timeout> moved;
  for (int i = 0; i < kMoved; ++i) moved.push_back(timer.new_timeout([&] { ++ran; }, kFar));
  timer.advance(1ms);
  // Each takes a slot of its own, until the wheel has no chunk left.
  for (int i = 0; i < 20'000; ++i) timer.new_timeout([] {}, 2 * kFar + i * 1min);
  {
    const Shortage shortage(0, Shortage::kAll);
    timer.advance(1ms);
    EXPECT_GT(shortage.failed(), 0) << "or this test could not fail";
  }
  for (Timeout& timeout : moved) EXPECT_TRUE(timeout.reschedule(10ms));
  without_memory([&] { timer.advance(1ms); });
  timer.advance(10ms);
  EXPECT_EQ(ran, kMoved);
}

TEST(Allocation, ARepeatedTimerThatCannotBeMovedStaysArmedAsItWas) {
  int triggers = 0;
  ManualTimer timer;
  RepeatedTimer repeated("heartbeat", 1h, timer, {.on_trigger = [&] { ++triggers; }});
  repeated.start();
  timer.advance(1ms);  // in the wheel, so an earlier deadline needs a recheck request
  const Growth growth;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(with_failing(0, [&] { repeated.reset(1min); }).bad_alloc);
  EXPECT_LT(growth.now(), 1000);
  timer.advance(59min);
  EXPECT_EQ(triggers, 0);
  timer.advance(1min);
  EXPECT_EQ(triggers, 1);
  timer.advance(1min);
  EXPECT_EQ(triggers, 2) << "from then on with the new timeout";
}

/// cancel() of a timeout in the wheel needs a place in the queue of recheck requests, and must not fail without one.
TEST(Allocation, CancelAfterTransferNeverFails) {
  constexpr int kTimeouts = 300;  // more than one block of the queue
  const auto failures = [](bool on_a_new_thread, std::int64_t count) {
    return for_each_allocation([&](std::int64_t n) {
      std::array<RecordingTask, kTimeouts> tasks;
      const auto witness = std::make_shared<int>();
      HashedWheelTimer timer(1ms);
      std::vector<Timeout> timeouts;
      for (RecordingTask& task : tasks) {
        timeouts.push_back(timer.new_timeout(unowned(task), kFar));
        timeouts.push_back(timer.new_timeout([witness] {}, kFar));
      }
      Gate gate(timer);  // they are in the wheel now
      bool struck = false;
      const auto cancel_each = [&] {
        const Shortage shortage(n, count);
        for (Timeout& timeout : timeouts) EXPECT_TRUE(timeout.cancel());
        struck = shortage.failed() != 0;
      };
      on_a_new_thread ? std::thread(cancel_each).join() : cancel_each();
      EXPECT_EQ(timer.pending_timeouts(), 0);
      EXPECT_EQ(witness.use_count(), 1);
      for (Timeout& timeout : timeouts) EXPECT_FALSE(timeout.cancel());
      gate.open();
      // Each is collected from the wheel exactly once, by the queue or by the list.
      const auto is_told = [](const RecordingTask& task) { return task.cancellations == 1; };
      EXPECT_TRUE(eventually([&] { return std::ranges::all_of(tasks, is_told); }));
      expect_usable(timer);
      EXPECT_TRUE(timer.stop().empty());
      EXPECT_TRUE(std::ranges::all_of(tasks, is_told));
      EXPECT_TRUE(is_balanced(timer.stats()));
      return struck;
    });
  };
  for (const bool on_a_new_thread : {false, true})
    for (const std::int64_t count : {std::int64_t{1}, Shortage::kAll}) {
      SCOPED_TRACE(std::to_string(count) + (on_a_new_thread ? " on a new thread" : ""));
      EXPECT_GE(failures(on_a_new_thread, count), 2);
    }
}

/// The link of a node that is cancelled without memory lies where the end of a large callable was, so the callable is
/// destroyed first.
TEST(Allocation, ACallableThatFillsItsNodeIsDestroyedOnceByACancelWithoutMemory) {
  struct Filling {
    std::shared_ptr<int> first, last;
    void operator()() const { ADD_FAILURE() << "ran although it was cancelled"; }
  };
  static_assert(detail::kFitsNode<Filling> && sizeof(Filling) + sizeof(void*) == detail::kTaskStorageSize);
  const Filling callable{std::make_shared<int>(1), std::make_shared<int>(2)};
  ManualTimer timer;
  std::vector<Timeout> timeouts;
  for (int i = 0; i < 100; ++i) timeouts.push_back(timer.new_timeout(callable, kFar));
  timer.advance(1ms);  // in the wheel
  on_a_thread_without_memory([&] {
    for (Timeout& timeout : timeouts) EXPECT_TRUE(timeout.cancel());
  });
  EXPECT_EQ(callable.first.use_count(), 1);
  EXPECT_EQ(callable.last.use_count(), 1);
  timer.advance(1ms);
  EXPECT_EQ(timer.next_wakeup(), std::nullopt) << "the nodes are out of the wheel";
  timeouts.clear();
  expect_usable(timer);
}

/// One thread has enqueued a recheck request for a timeout that it has moved. Another thread cancels the timeout and
/// finds no memory for a request of its own. The worker comes to the first request and collects the timeout.
TEST(Allocation, NodesThatAnotherRecheckHasCollectedAreNotCollectedAgain) {
  RecordingTask task;
  int runs = 0;
  ManualTimer timer;
  Timeout timeout = timer.new_timeout(unowned(task), kFar);
  timer.advance(1ms);  // in the wheel
  EXPECT_TRUE(timeout.reschedule(1s));
  on_a_thread_without_memory([&] { EXPECT_TRUE(timeout.cancel()); });
  timeout = {};
  timer.advance(1ms);
  EXPECT_EQ(task.cancellations, 1);
  timer.new_timeout([&] { ++runs; }, 1ms);  // in the same node
  timer.advance(1ms);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(task.cancellations, 1);
  EXPECT_EQ(timer.next_wakeup(), std::nullopt);
}

/// The worker gets no memory for the wheel: it tries again in a later tick.
class WorkerWithoutMemory : public ::testing::Test {
 protected:
  static constexpr int kTimeouts = 400;  // each in a bucket of its own: more than the wheel has room for at first

  WorkerWithoutMemory() { order_.reserve(kTimeouts); }

  /// While the worker is held, calls schedule(). Then lets the worker go on without memory, until `times` allocations
  /// have failed.
  template <class Schedule>
  void go_on_without_memory(int times, Schedule schedule) {
    Gate gate(timer_);
    schedule();
    shortage_.emplace(0, Shortage::kAll, Shortage::Of::OtherThreads);
    gate.open();
    EXPECT_TRUE(eventually([&] { return shortage_->failed() >= times; })) << "the worker does not try again";
  }
  /// One per tick, from 1 ms to kTimeouts ms ahead.
  void schedule_near() {
    for (int i = 0; i < kTimeouts; ++i) {
      timeouts_.push_back(after(timer_, (i + 1) * 1ms, [this, i](Timeout& timeout) {
        EXPECT_GE(steady_clock::now(), timeout.deadline());
        order_.push_back(i);
        ran_.count_down();
      }));
    }
  }

  std::vector<int> order_;  // the worker's
  Latch ran_{kTimeouts};
  const std::shared_ptr<RecordingTask> task_ = std::make_shared<RecordingTask>();
  HashedWheelTimer timer_{1ms, 512};
  std::vector<Timeout> timeouts_;
  std::optional<Shortage> shortage_;
};

TEST_F(WorkerWithoutMemory, LosesNothingInTransfer) {
  go_on_without_memory(3, [this] { schedule_near(); });
  EXPECT_FALSE(ran_.is_open());
  shortage_.reset();
  EXPECT_TRUE(ran_.wait());
  EXPECT_TRUE(timer_.stop().empty());
  EXPECT_TRUE(is_balanced(timer_.stats()));
  EXPECT_EQ(timer_.stats().expired, kTimeouts + 1);
  // They are transferred in order, and late ones are due in the next tick: in order again.
  for (int i = 0; i < kTimeouts; ++i) ASSERT_EQ(order_[static_cast<std::size_t>(i)], i);
}

TEST_F(WorkerWithoutMemory, LosesNothingWithEachAllocationFailing) {
  const int failures = for_each_allocation([&](std::int64_t n) {
    HashedWheelTimer timer(1ms, 512);
    std::atomic<int> left = kTimeouts;
    Gate gate(timer);
    for (int i = 0; i < kTimeouts; ++i) timer.new_timeout([&] { --left; }, (i % 200) * 1ms);
    Shortage shortage(n, 1, Shortage::Of::OtherThreads);
    gate.open();
    EXPECT_TRUE(eventually([&] { return left == 0; }));
    shortage.end();
    EXPECT_TRUE(timer.stop().empty());
    return shortage.failed() != 0;
  });
  EXPECT_GE(failures, 2);
}

TEST_F(WorkerWithoutMemory, StopReturnsTimeoutsThatCouldNotBeTransferred) {
  go_on_without_memory(1, [this] {
    schedule_near();
    for (int i = 0; i < kTimeouts; ++i) timeouts_.push_back(timer_.new_timeout([] {}, kFar + i * 1ms));
    for (std::size_t i = 0; i < kTimeouts / 2; ++i) EXPECT_TRUE(timeouts_[i].cancel());
  });
  const std::vector<Timeout> unprocessed = timer_.stop();
  const TimerStats stats = timer_.stats();
  EXPECT_TRUE(is_balanced(stats));
  EXPECT_EQ(stats.unprocessed, static_cast<std::int64_t>(unprocessed.size()));
  EXPECT_EQ(stats.expired, 1 + static_cast<std::int64_t>(order_.size()));
  EXPECT_EQ(order_.size() + unprocessed.size(), 2 * kTimeouts - kTimeouts / 2);
}

TEST_F(WorkerWithoutMemory, CancelledOnesAreStillCollected) {
  go_on_without_memory(1, [this] {
    for (int i = 0; i < kTimeouts; ++i) timeouts_.push_back(timer_.new_timeout(task_, kFar + i * 1ms));
    timer_.new_timeout([] {}, 0ns);  // so that the worker takes them
  });
  for (Timeout& timeout : timeouts_) EXPECT_TRUE(timeout.cancel());
  EXPECT_TRUE(eventually([&] { return task_->cancellations == kTimeouts; }));
}

/// The task waits in an executor and owns its only handle. Its destructor drops the jobs of the executor. So the thread
/// that takes the task back has the last reference.
TEST(Allocation, ATaskTakenBackFromItsExecutorMayOwnItsOnlyHandle) {
  const auto round = [] {
    struct Owner {
      explicit Owner(JobQueue& jobs) : queue(jobs) {}
      ~Owner() { queue.take(); }
      JobQueue& queue;
      Timeout self;
    };
    JobQueue queue;
    ManualTimer timer(Options{.tick_duration = 1ms, .executor = queue.executor()});
    auto owner = std::make_unique<Owner>(queue);
    Owner& alias = *owner;
    alias.self = timer.new_timeout([owned = std::move(owner)] {}, 1ms);
    timer.advance(1ms);
    EXPECT_TRUE(alias.self.cancel_and_wait());
  };
  round();
  const Growth growth;
  for (int i = 0; i < 3; ++i) round();
  EXPECT_LT(growth.now(), 5000) << "less than a core";
}

/// stop() reserves room for its result, and then more timeouts come. It has no memory for more room, and throws after
/// the timer has stopped. The next stop() returns all timeouts, or they go with the timer.
template <class T>
class StopThatGrows : public ::testing::Test {};
using StoppedTimers = ::testing::Types<HashedWheelTimer, ManualTimer>;
TYPED_TEST_SUITE(StopThatGrows, StoppedTimers, );

TYPED_TEST(StopThatGrows, FailsAtFirstAndTheNextOneReturnsEverything) {
  constexpr int kBefore = 10;
  constexpr int kAll = 1 + kBefore + 100;
  for (const bool stops_again : {true, false}) {
    SCOPED_TRACE(stops_again ? "stops again" : "stops once");
    RecordingTask task;
    const auto witness = std::make_shared<int>();
    auto timer = make_timer<TypeParam>();
    std::vector<Timeout> handles{timer->new_timeout(unowned(task), kFar)};
    const auto schedule_until = [&](std::size_t count) {
      while (handles.size() != count) handles.push_back(timer->new_timeout([witness] {}, kFar));
    };
    schedule_until(1 + kBefore);
    for (int attempt = 0; attempt < 3; ++attempt) {
      EXPECT_TRUE(with_failing(0, [&] { timer->stop(); }).bad_alloc);
      EXPECT_EQ(timer->pending_timeouts(), 1 + kBefore);
      EXPECT_EQ(timer->stats().unprocessed, 0);
      expect_usable(*timer);
    }
    {
      std::optional<Shortage> shortage;
      const AllocationObserver observer([&](std::size_t) {
        if (shortage) return;
        schedule_until(kAll);  // room for those before has just been asked for
        shortage.emplace(1, 1);
      });
      ASSERT_TRUE(throws<std::bad_alloc>([&] { timer->stop(); }));
    }
    EXPECT_EQ(timer->pending_timeouts(), 0);
    EXPECT_EQ(timer->stats().unprocessed, kAll);
    EXPECT_THROW(timer->new_timeout([] {}, 0ns), IllegalState);
    EXPECT_EQ(witness.use_count(), kAll) << "a stopped timeout keeps its task";
    if (stops_again) {
      EXPECT_TRUE(std::ranges::is_permutation(timer->stop(), handles));
      EXPECT_TRUE(timer->stop().empty());
      handles.clear();
    }
    timer.reset();
    EXPECT_EQ(witness.use_count(), 1);
    EXPECT_EQ(task.cancellations, 1);
  }
}

/// A ManualTimer on a thread that is new to it, from the constructor to stop(): no allocation that fails costs a
/// timeout. Refusals are reported; the other timeouts wait for memory.
TEST(Allocation, FailsAnywhereInAManualTimer) {
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{3}, Shortage::kAll}) {
    const auto attempt = [&](std::int64_t n) {
      bool struck = false;
      std::thread([&] {
        std::vector<Timeout> pending;
        pending.reserve(2000);
        std::size_t ran = 0, ended = 0;
        Shortage shortage(n, count);
        std::optional<ManualTimer> timer;
        struck = throws<std::bad_alloc>([&] { timer.emplace(1ms); });
        if (struck) return;
        for (int i = 0; i < 1500; ++i) {
          const auto delay = i % 3 == 0 ? i * 1ms : i * std::chrono::milliseconds(1h);
          const auto task = [&ran] { ++ran; };
          Timeout timeout =
              i % 2 == 0 ? timer->try_new_timeout(task, delay) : timer->try_new_timeout(task, timer->now() + delay);
          if (timeout) pending.push_back(std::move(timeout));
        }
        timer->next_wakeup();
        for (std::size_t i = 0; i < pending.size(); i += 7) ended += pending[i].cancel() ? 1 : 0;
        std::size_t counted = timer->advance(700ms);
        counted += timer->advance_to(timer->now() + 1s, 10);
        counted += timer->advance_to(timer->now() + 24h);
        EXPECT_EQ(counted, ran);
        EXPECT_EQ(static_cast<std::size_t>(timer->pending_timeouts()), pending.size() - ended - ran);
        std::vector<Timeout> returned;
        const bool failed = throws<std::bad_alloc>([&] { returned = timer->stop(); });
        shortage.end();
        if (failed) returned = timer->stop();
        struck = shortage.failed() != 0;
        EXPECT_EQ(ended + ran + returned.size(), pending.size());
        EXPECT_TRUE(struck || pending.size() == 1500u);
      }).join();
      return struck;
    };
    EXPECT_GT(for_each_allocation(attempt), 15);
  }
}

/// While a ManualTimer has no memory for its wheel, it forgets no timeout. Its driver must come again at once, however
/// late the next known timeout is. A timeout is new, or has moved to earlier.
TEST(WithoutMemory, AManualTimerIsToBeDrivenAtOnce) {
  ManualTimer timer(1ms, steady_clock::time_point(1h));
  int runs = 0;
  const auto is_to_be_driven_at_once_without_memory = [&] {
    return without_memory([&] { return timer.next_wakeup() == timer.now(); });
  };
  Timeout timeout = timer.new_timeout([&] { ++runs; }, 2 * kFar);
  EXPECT_TRUE(is_to_be_driven_at_once_without_memory());
  ASSERT_FALSE(timer.next_wakeup() == timer.now());
  // Each in a slot of its own, until the wheel has no place left for one more. That one is cancelled.
  bool full = false;
  for (int i = 2; i < 64 && !full; ++i)
    for (const auto span : {1ms, 64ms, 64 * 64ms}) {
      Timeout other = timer.new_timeout([] {}, i * span);
      full = is_to_be_driven_at_once_without_memory();
      if (!full) continue;
      EXPECT_TRUE(other.cancel());
      break;
    }
  ASSERT_TRUE(full);
  ASSERT_FALSE(is_to_be_driven_at_once_without_memory()) << "the one that was cancelled needs no place";
  EXPECT_TRUE(timeout.reschedule(1ms));
  EXPECT_TRUE(is_to_be_driven_at_once_without_memory());
  EXPECT_EQ(timer.next_wakeup(), timeout.deadline());
  EXPECT_EQ(timer.advance(1ms), 1U);
  EXPECT_EQ(runs, 1);
}

TEST(Allocation, TheWarningOfTooManyTimersDoesNotEndTheProcess) {
  std::vector<std::unique_ptr<HashedWheelTimer>> timers;
  for (int i = 0; i < 64; ++i) timers.push_back(std::make_unique<HashedWheelTimer>());
  testing::internal::CaptureStderr();
  for_each_allocation(
      [&](std::int64_t n) { return with_failing(n, [&] { HashedWheelTimer timer; }, Shortage::kAll).struck; });
  const std::string said = testing::internal::GetCapturedStderr();
  static bool has_warned = false;  // the warning comes once in a process
  EXPECT_TRUE(has_warned || contains(said, "more than 64 timers")) << said;
  has_warned = true;
}

// The callable, which owns the timer, has been built when the queue finds that it has no memory for it.
TEST(Allocation, ARefusedTaskMayOwnTheTimer) {
  bool refused = false;
  for (int attempt = 0; !refused && attempt < 10; ++attempt) {
    auto timer = std::make_unique<HashedWheelTimer>(10min);
    HashedWheelTimer& alias = *timer;
    const auto witness = std::make_shared<int>();
    alias.new_timeout([witness] {}, kFar);
    int accepted = 0;
    Shortage shortage(0, Shortage::kAll);
    while (alias.try_new_timeout([witness] {}, kFar)) ++accepted;
    refused = throws<std::bad_alloc>([&] { alias.new_timeout([owner = std::move(timer), witness] {}, kFar); });
    shortage.end();
    if (!refused) {  // the worker has made room in the queue meanwhile
      alias.stop();
      continue;
    }
    EXPECT_TRUE(accepted > 10 && accepted < 1000) << "not the queue was full, but the memory for nodes: " << accepted;
    EXPECT_EQ(witness.use_count(), 1) << "the timer went with the task, and all of its timeouts with it";
  }
  EXPECT_TRUE(refused);
}

/// Each allocation in its turn, of the executor of the timer and of one of the task's own.
TEST(WithoutMemory, ATaskThatNoExecutorCanTakeRunsOnTheWorkerOnce) {
  for (const bool own : {false, true}) {
    std::vector<std::function<void()>> posted;
    posted.reserve(2);
    ErrorLog errors;
    const auto post = [&](std::function<void()> job) { posted.push_back(std::move(job)); };
    const BatchExecutor loop{post};
    const auto witness = std::make_shared<int>();
    ManualTimer timer(own ? Options{.tick_duration = 1ms, .on_task_error = errors.handler()}
                          : Options{.tick_duration = 1ms, .executor = post, .on_task_error = errors.handler()});
    for (int i = 0; i < 2; ++i) timer.new_timeout([] {}, 0ns);
    timer.advance(1ms);  // the wheel has memory now, also for one more level
    posted.clear();
    std::size_t on_the_worker = 0;
    for_each_allocation([&](std::int64_t n) {
      int ran = 0;
      const auto task = [&ran, witness] { ++ran; };
      const Timeout timeout = own ? timer.new_timeout(hwt::on(loop, task), 0ns) : timer.new_timeout(task, 0ns);
      Shortage shortage(n, 1);
      timer.advance(1ms);
      shortage.end();
      EXPECT_TRUE(timeout.is_expired());
      on_the_worker += posted.empty() ? 1 : 0;
      for (const auto& job : posted) job();
      posted.clear();
      EXPECT_EQ(ran, 1);
      EXPECT_EQ(witness.use_count(), 2) << "the task lives on";
      return shortage.failed() != 0;
    });
    EXPECT_GE(on_the_worker, own ? 2u : 1u) << "without a job, or without a batch";
    EXPECT_EQ(errors.errors(), std::vector<std::string>(on_the_worker, std::bad_alloc().what()));
    EXPECT_EQ(timer.stats().task_errors, static_cast<std::int64_t>(on_the_worker));
    EXPECT_TRUE(is_balanced(timer.stats()));
  }
}

/// On its way down the timeout needs memory in the wheel, and there is none. The wheel must not go through all ticks
/// before its own, because an hour has 3.6e12 of them.
TEST(WithoutMemory, TimePassesByHoursWithTicksOfANanosecond) {
  ManualTimer timer(1ns);
  int ran = 0;
  timer.new_timeout([&] { ++ran; }, 1h);
  timer.advance(1ns);  // takes it into the wheel
  {
    const Shortage shortage(0, Shortage::kAll);
    timer.advance(1h - 2ns);
    EXPECT_EQ(ran, 0);
    timer.advance(1ns);
    EXPECT_EQ(ran, 1);
    EXPECT_GT(shortage.failed(), 0) << "nothing lacked memory";
  }
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

TEST(WithoutMemory, ALoopIsToComeBackAtOnceForTasksThatAreLeft) {
  int ran = 0;
  LoopTimer timer(1ms);
  const auto add = [&](int count, auto task) {
    const auto deadline = steady_clock::now();
    for (int i = 0; i < count; ++i) timer.new_timeout(task, deadline);
    ASSERT_TRUE(eventually([&] { return steady_clock::now() > deadline + 2ms; }));
  };
  add(3, [&] { ++ran; });
  timer.run_due(1);
  add(10'000, [] {});  // more than the wheel has memory for
  const Shortage shortage(0, Shortage::kAll);
  const auto next = timer.run_due(1);
  EXPECT_GT(shortage.failed(), 0);
  EXPECT_EQ(ran, 2);
  ASSERT_TRUE(next);
  EXPECT_LE(*next, steady_clock::now());
}

TEST(WithoutMemory, ALoopIsToComeBackWithinAMillisecond) {
  bool ran = false;
  LoopTimer timer(1ms);
  const auto deadline = steady_clock::now();
  timer.new_timeout([&] { ran = true; }, deadline);
  ASSERT_TRUE(eventually([&] { return steady_clock::now() > deadline + 2ms; }));
  std::optional<steady_clock::time_point> next;
  const auto before = steady_clock::now();
  without_memory([&] { next = timer.run_due(); });
  EXPECT_FALSE(ran);
  ASSERT_TRUE(next);
  EXPECT_GE(*next, before + 1ms) << "a loop would not sleep";
  EXPECT_LE(*next, steady_clock::now() + 1ms);
  EXPECT_TRUE(eventually([&] { return timer.run_due(), ran; }));
  EXPECT_EQ(timer.run_due(), std::nullopt);
}

TEST(WithoutMemory, OnEarlierSetsAFunctionThatIsCalled) {
  for (const bool has_advanced : {false, true}) {  // the latter has taken the timeout out of the inbox
    int calls = 0;
    ManualTimer timer(1ms);
    timer.new_timeout([] {}, kFar);
    without_memory([&] {
      if (has_advanced) timer.advance(1ms);
      timer.on_earlier([&] { ++calls; });
    });
    EXPECT_EQ(calls, has_advanced ? 1 : 0);
    timer.new_timeout([] {}, 0s);
    EXPECT_EQ(calls, 1);
  }
}

TEST(WithoutMemory, AThreadThatHasUsedNoTimerCancels) {
  for (const bool in_wheel : {false, true}) {
    SCOPED_TRACE(in_wheel ? "in the wheel" : "queued");
    int calls = 0;
    ManualTimer timer(1ms);
    timer.on_earlier([&] { ++calls; });
    Timeout timeout = timer.new_timeout(must_not_run, 10ms);
    if (in_wheel) timer.next_wakeup();
    calls = 0;
    on_a_thread_without_memory([&] { EXPECT_TRUE(timeout.cancel()); });
    EXPECT_EQ(calls, in_wheel ? 1 : 0) << "only the driver can take it out of the wheel";
    EXPECT_EQ(timer.stats().cancelled, 1);
    EXPECT_EQ(timer.pending_timeouts(), 0);
    timer.advance(1ms);
    EXPECT_EQ(timer.next_wakeup(), std::nullopt);
    timer.advance(10ms);
    EXPECT_TRUE(is_balanced(timer.stats()));
  }
}

/// Each slab has a number in this process. The table of numbers grows by 1,024 entries at a time, and so many timeouts
/// need more than 1,024 slabs.
TEST(WithoutMemory, ForTheNumberOfASlabATimeoutIsRefusedAndTheNextIsNot) {
  constexpr int kTimeouts = 1'100'000;
  constexpr std::size_t kNumbers = 1024 * sizeof(internal::SlabDirectory::Entry);
  int refused = 0, failed = 0;
  ManualTimer timer;
  for (int i = 0; i < kTimeouts; ++i) {
    std::optional<Shortage> shortage;
    const AllocationObserver observer([&](std::size_t size) {
      if (size == kNumbers && failed == 0) shortage.emplace(0, 1);
    });
    if (!timer.try_new_timeout([] {}, kFar)) ++refused;
    if (shortage) failed += static_cast<int>(shortage->failed());
  }
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(timer.pending_timeouts(), kTimeouts - 1);
}

}  // namespace
}  // namespace hwt::test
