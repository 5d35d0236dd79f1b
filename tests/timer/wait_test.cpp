// No thread waits for a thread that may not run, and the worker does not sleep while it has work. And the producer that
// a thread has in a timer.

#include "hashed_wheel_timer/internal/core/core.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/any_timer.h"
#include "tests/support/when_copied.h"
#include "tests/support/worker_call.h"

#if !defined(_WIN32)
#include <limits.h>  // NOLINT(modernize-deprecated-headers): POSIX's part of it
#include <pthread.h>
#endif

namespace hwt::test {
namespace {

// The tests hold threads and the worker at chosen points, as if the system had preempted them.

/// A thread that stops inside an allocation in the midst of a call, as if it were preempted there.
class StoppedThread {
 public:
  /// The thread calls prepare(), and then call(), in which it stops in allocation number `at`, counted from 0. Returns
  /// when it has stopped or ended.
  template <class Prepare, class Call>
  StoppedThread(int at, Prepare prepare, Call call) {
    thread_ = std::jthread([this, at, prepare, call]() mutable {
      prepare();
      int allocations = 0;
      const AllocationObserver observer([&](std::size_t) {
        if (allocations++ != at) return;
        in_the_midst_ = true;
        arrived_.count_down();
        EXPECT_TRUE(go_on_.wait());
      });
      call();
      arrived_.count_down();
    });
    EXPECT_TRUE(arrived_.wait());
  }
  ~StoppedThread() { go_on_.count_down(); }
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;

  /// Returns whether the thread has stopped. If not, call() had fewer allocations, and has ended.
  bool in_the_midst() const { return in_the_midst_; }
  /// Lets the thread go on, and waits for its end.
  void go_on() {
    go_on_.count_down();
    thread_.join();
  }

 private:
  Latch arrived_, go_on_;
  std::atomic<bool> in_the_midst_ = false;
  std::jthread thread_;
};

/// Far as well, but earlier than kFar.
constexpr std::chrono::minutes kHalfWay{30};

/// Calls f on the worker, after a pass has begun and before the sleep that follows: in a cancelled(), which the worker
/// calls while it takes from its inbox. Timeouts that come then are not part of that pass. The next sleep must not
/// outlast them.
void call_between_pass_and_sleep(Timer& timer, const std::function<void()>& f) {
  Latch called;
  const auto call = [&] {
    f();
    called.count_down();
  };
  EXPECT_TRUE(timer.new_timeout(on_cancelled(call), kFar).cancel());
  ASSERT_TRUE(called.wait());
}

/// A timeout that comes, or is moved, between a pass and a sleep must run.
TEST(BeforeASleep, ATimeoutThatIsScheduledOrMovedToEarlierIsFound) {
  const auto move = [](Timeout& timeout) { EXPECT_TRUE(timeout.reschedule(5ms)); };
  const auto move_twice = [&](Timeout& timeout) {
    EXPECT_TRUE(timeout.reschedule(kHalfWay));
    move(timeout);
  };
  const auto move_elsewhere = [&](Timeout& timeout) { std::jthread([&] { move(timeout); }).join(); };
  const auto move_by_two = [&](Timeout& timeout) {
    EXPECT_TRUE(timeout.reschedule(kHalfWay));
    move_elsewhere(timeout);
  };
  const auto schedule_another = [](Timeout& far) {
    far.timer()->new_timeout([far]() mutable { far.task().run(far); }, 5ms);
  };
  const std::vector<std::function<void(Timeout&)>> ways{move, move_twice, move_elsewhere, move_by_two,
                                                        schedule_another};
  for (std::size_t way = 0; way < ways.size(); ++way)
    for (const bool in_the_wheel : {false, true}) {
      SCOPED_TRACE("way " + std::to_string(way));
      Latch ran;
      HashedWheelTimer timer(1ms);
      const auto count = [&] { ran.count_down(); };
      Timeout timeout;
      if (in_the_wheel) {
        timeout = timer.new_timeout(count, kFar);
        await_transfer(timer);
      }
      call_between_pass_and_sleep(timer, [&] {
        if (!in_the_wheel) timeout = timer.new_timeout(count, kFar);
        ways[way](timeout);
      });
      EXPECT_TRUE(ran.wait(10s)) << "the worker sleeps although a timeout is due";
    }
}

class WithAThreadInReschedule : public ::testing::Test {
 protected:
  WithAThreadInReschedule() { await_transfer(timer_); }

  /// Starts a thread that stops in its reschedule(), in the allocation that its first recheck request needs.
  void stop_in_reschedule(std::chrono::nanoseconds delay) {
    const auto take_a_place = [this] { EXPECT_TRUE(timer_.new_timeout([] {}, kFar).cancel()); };
    stopped_.emplace(0, take_a_place,
                     [this, timeout = timeout_, delay]() mutable { moved_ = timeout.reschedule(delay); });
    EXPECT_TRUE(stopped_->in_the_midst());
  }
  /// Lets the thread go on, and returns the result of its reschedule().
  bool go_on() {
    stopped_->go_on();
    return moved_;
  }

  std::atomic<int> runs_ = 0;
  Latch ran_;
  HashedWheelTimer timer_{1ms};
  Timeout timeout_ = after(timer_, kFar, [this] {
    ++runs_;
    ran_.count_down();
  });
  bool moved_ = false;  // the thread's until it is joined
  std::optional<StoppedThread> stopped_;
};

TEST_F(WithAThreadInReschedule, AnotherReschedulesToEarlier) {
  stop_in_reschedule(kHalfWay);
  std::jthread([&] { EXPECT_TRUE(timeout_.reschedule(5ms)); }).join();
  EXPECT_TRUE(ran_.wait(10s));
  EXPECT_FALSE(go_on());
  EXPECT_EQ(runs_, 1);
}

/// The new deadline lies between that of the stopped thread and the old one, for which the timeout is in the wheel.
TEST_F(WithAThreadInReschedule, AnotherReschedulesToAfterwards) {
  stop_in_reschedule(5ms);
  std::jthread([&] { EXPECT_TRUE(timeout_.reschedule(50ms)); }).join();
  const auto deadline = timeout_.deadline();
  EXPECT_TRUE(ran_.wait(10s)) << "it waits for a thread that has stopped";
  EXPECT_GE(steady_clock::now(), deadline);
  go_on();  // either result is right: the timeout has run, and not before the stopped thread's deadline
  EXPECT_EQ(runs_, 1);
}

TEST_F(WithAThreadInReschedule, AnotherCancels) {
  stop_in_reschedule(5ms);
  std::jthread([&] { EXPECT_TRUE(timeout_.cancel()); }).join();
  EXPECT_FALSE(go_on());
  EXPECT_EQ(runs_, 0);
}

TEST_F(WithAThreadInReschedule, TheWorkerGoesOnAndTheTimerStops) {
  stop_in_reschedule(5ms);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(ran_in_task(timer_, [] {}));
  EXPECT_EQ(timer_.stop(), std::vector<Timeout>{timeout_});
  EXPECT_FALSE(go_on());
  EXPECT_TRUE(timeout_.is_cancelled());
  EXPECT_EQ(runs_, 0);
  EXPECT_TRUE(is_balanced(timer_.stats()));
}

template <class T>
class StoppedTimer : public ::testing::Test {};
TYPED_TEST_SUITE(StoppedTimer, AllTimers, TimerNames);

/// A thread was preempted while it enqueued a timeout. It has counted the timeout already, and will be refused.
TYPED_TEST(StoppedTimer, HasNonePendingWhenStopReturns) {
  for (const std::int64_t limit : {-1, 10}) {
    TypeParam timer(Options{.max_pending_timeouts = limit});
    timer.new_timeout([] {}, kFar);
    Latch enqueues, stopped;
    std::jthread late([&] {
      bool is_built = false;  // in its node. From then on a new_timeout() allocates only to enqueue it
      bool held = false;
      const AllocationObserver observer([&](std::size_t) {
        if (!is_built || std::exchange(held, true)) return;
        enqueues.count_down();
        EXPECT_TRUE(stopped.wait());
      });
      const std::function<void()> note = [&] { is_built = true; };
      const WhenCopied task(note);
      const auto add = [&] {
        is_built = false;
        timer.new_timeout(task, kFar).cancel();
      };
      EXPECT_TRUE(throws<IllegalState>([&] {
        for (int i = 0; i < 100'000; ++i) add();
      }));
      EXPECT_TRUE(held);
    });
    ASSERT_TRUE(enqueues.wait());
    EXPECT_EQ(timer.stop().size(), 1u);
    EXPECT_EQ(timer.pending_timeouts(), 0);
    const TimerStats stats = timer.stats();
    EXPECT_EQ(stats.pending, 0);
    EXPECT_EQ(stats.scheduled, stats.cancelled + stats.unprocessed);
    stopped.count_down();
    late.join();
    EXPECT_EQ(timer.pending_timeouts(), 0);
    EXPECT_EQ(timer.stats().scheduled, stats.scheduled);
  }
}

// The producer that a thread has in a timer: how the thread gets it at its first use, and its fate at the thread's end.

void use(Timer& timer) {
  EXPECT_TRUE(timer.new_timeout([] {}, kFar).cancel());
}

void use_by_new_thread(Timer& timer) {
  std::thread([&] { use(timer); }).join();
}

int producers_of(Timer& timer) {
  const Timeout timeout = timer.new_timeout([] {}, kFar);
  return test::producers_of(internal::Node::of(timeout)->core());
}

TEST(FirstUse, WaitsForNoThreadThatIsInTheMidstOfItsOwn) {
  int stops = 0;
  for (;; ++stops) {
    HashedWheelTimer timer(1ms);
    HashedWheelTimer other(1ms);
    timer.start();
    other.start();
    const StoppedThread stopped(stops, [] {}, [&] { use(timer); });
    if (!stopped.in_the_midst()) break;
    Latch done;
    std::jthread others([&] {
      for (int i = 0; i < 3; ++i) {
        use_by_new_thread(timer);
        use_by_new_thread(other);
        HashedWheelTimer third(1ms);
        use_by_new_thread(third);
      }
      done.count_down();
    });
    ASSERT_TRUE(done.wait()) << "others wait for a thread that has stopped in allocation " << stops;
  }
  EXPECT_GE(stops, 2) << "a producer and its seat at least";
}

TEST(FirstUse, TakesOverAllThatThreadsHaveLeft) {
  constexpr int kThreads = 8;
  HashedWheelTimer timer(1ms);
  for (int round = 0; round < 20; ++round) {
    StayingThreads threads;
    for (int i = 0; i < kThreads; ++i) threads.call([&] { use(timer); });
  }
  EXPECT_EQ(producers_of(timer), kThreads) << "one of them is now this thread's";
}

TEST(FirstUse, WithoutMemoryLosesNoProducer) {
  HashedWheelTimer timer(1ms);
  use_by_new_thread(timer);
  const auto failures = for_each_allocation([&](std::int64_t n) {
    bool struck = false;
    std::thread([&] { struck = with_failing(n, [&] { use(timer); }).struck; }).join();
    return struck;
  });
  EXPECT_GE(failures, 1) << "or this test could not fail";
  EXPECT_EQ(producers_of(timer), 1) << "each thread takes over that of the last";
}

#if !defined(_WIN32)
/// Uses a timer when a thread ends, several times.
struct Late {
  // As often as the system calls it; but sanitizers are gone at the last time.
  static constexpr int kCalls = PTHREAD_DESTRUCTOR_ITERATIONS - (kSanitized ? 1 : 0);

  static void use_it(void* late) {
    auto& self = *static_cast<Late*>(late);
    ++self.calls;
    if (self.before_use) self.before_use();
    use(*self.timer);
    if (self.calls % kCalls != 0) pthread_setspecific(self.key, late);
  }

  explicit Late(Timer& used) : timer(&used) { EXPECT_EQ(pthread_key_create(&key, use_it), 0); }
  ~Late() { pthread_key_delete(key); }
  Late(const Late&) = delete;
  Late& operator=(const Late&) = delete;

  Timer* const timer;
  pthread_key_t key{};
  std::function<void()> before_use;
  int calls = 0;  // by one thread at a time
};

TEST(ThreadEnd, IsNotTheLastUse) {
  constexpr int kThreads = 50;
  HashedWheelTimer timer(1ms);
  use(timer);
  Late late(timer);  // of a later key than the timer's: destructors run in that order
  for (int i = 0; i < kThreads; ++i) {
    std::thread([&] {
      if (i % 2 == 0) use(timer);
      pthread_setspecific(late.key, &late);
    }).join();
  }
  EXPECT_EQ(late.calls, kThreads * Late::kCalls);
  EXPECT_LE(producers_of(timer), 2) << "late uses keep what they have borrowed";
}

TEST(ThreadEnd, LeavesTheProducerToTheThreadThatTakesItOver) {
  HashedWheelTimer timer(1ms);
  use(timer);
  Late late(timer);
  Latch has_taken_over, end;
  std::jthread next;
  late.before_use = [&] {
    if (next.joinable()) return;
    next = std::jthread([&] {
      use(timer);
      has_taken_over.count_down();
      EXPECT_TRUE(end.wait());
    });
    EXPECT_TRUE(has_taken_over.wait());
  };
  std::thread([&] {
    use(timer);
    pthread_setspecific(late.key, &late);
  }).join();
  EXPECT_EQ(producers_of(timer), 3) << "one each for this thread, the thread that took over, and the late use";
  end.count_down();
}
#endif

// SeatTable: how a thread finds its own part of each timer, and the fate of that part when timers are destroyed.

using internal::FreeSeats;
using internal::Seat;
using internal::SeatTable;

/// The free seats of some cores, and one seat of each with a thread.
class Cores {
 public:
  explicit Cores(std::size_t count) : seats_(count) {
    for (FreeSeats*& seats : seats_) seats = new FreeSeats;
  }
  ~Cores() {
    for (FreeSeats* seats : seats_)
      if (seats != nullptr) seats->close();
  }
  Seat* seat(std::size_t index, std::uint64_t core_id) { return seats_[index]->add(nullptr, core_id); }
  void close(std::size_t index) { std::exchange(seats_[index], nullptr)->close(); }

 private:
  std::vector<FreeSeats*> seats_;
};

TEST(SeatTable, FindsEachSeatByTheIdOfItsCore) {
  EXPECT_EQ(SeatTable().find(1), nullptr);
  // Consecutive ids, as cores have them; those of every 4096th core; any; and those that hash to even numbers.
  for (const std::uint64_t step : {1ULL, 4096ULL, 0x9E37'79B9'7F4A'7C15ULL, 0x326E'E67A'0000'0000ULL}) {
    constexpr std::size_t kCores = 1024;  // then half of the table is full
    Cores cores(kCores);
    SeatTable table;
    std::vector<Seat*> seats;
    for (std::size_t i = 0; i < kCores; ++i) {
      ASSERT_TRUE(table.reserve());
      seats.push_back(cores.seat(i, (i + 1) * step));
      table.add(seats.back());
    }
    for (std::size_t i = 0; i < kCores; ++i) EXPECT_EQ(table.find((i + 1) * step), seats[i]);
    EXPECT_EQ(table.find((kCores + 1) * step), nullptr);
  }
}

TEST(SeatTable, GivesSeatsOfCoresThatHaveGoneBackWhenItIsFull) {
  constexpr std::size_t kCores = 1000;
  Cores cores(kCores);
  SeatTable table;
  ASSERT_TRUE(table.reserve());
  Seat* const first = cores.seat(0, 1);
  table.add(first);
  for (std::size_t i = 1; i < kCores; ++i) {
    ASSERT_TRUE(table.reserve());
    table.add(cores.seat(i, i + 1));
    cores.close(i);
    EXPECT_EQ(table.find(1), first);
  }
  std::size_t left = 0;
  for (std::size_t i = 0; i < kCores; ++i) left += table.find(i + 1) != nullptr ? 1 : 0;
  EXPECT_LE(left, 4u) << "of one core that is there and 999 that are gone";
}

}  // namespace
}  // namespace hwt::test
