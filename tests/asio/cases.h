// The promises of asio.h. If basic_waitable_timer makes the same promise, the test runs on steady_timer too.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/deadline.h"
#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/support/test_support.h"

namespace {

using namespace std::chrono_literals;
using hwt::HashedWheelTimer;
using hwt::ManualTimer;
using hwt::Timeout;
using hwt::test::eventually;
using hwt::test::kFar;
using hwt::test::kNanDelay;
using hwt::test::run_together;
using net::async_wait_for;
using net::async_wait_until;
using std::chrono::steady_clock;

constexpr auto kAborted = host::error::operation_aborted;

/// steady_timer itself.
struct Steady {
  using Waits = host::steady_timer;
  template <class... Expiry>
  Waits make(Expiry... expiry) {
    return Waits(loop, expiry...);
  }
  std::int64_t pending() const { return 0; }

  host::io_context loop;
};

struct OnLoop {
  using Waits = net::WheelTimer;
  template <class... Expiry>
  Waits make(Expiry... expiry) {
    return Waits(loop, *timer, expiry...);
  }
  std::int64_t pending() const { return timer->pending_timeouts(); }

  host::io_context loop;
  std::optional<net::LoopTimer> timer{std::in_place, loop.get_executor()};
};

struct OnShared {
  using Waits = net::WheelTimer;
  template <class... Expiry>
  Waits make(Expiry... expiry) {
    return Waits(loop, *timer, expiry...);
  }
  std::int64_t pending() const { return timer->pending_timeouts(); }

  host::io_context loop;
  std::optional<HashedWheelTimer> timer{std::in_place, 1ms};
};

template <class Kit>
struct Waiting : testing::Test, Kit {
  // The worker may have claimed the timeout of a wait that was then cancelled, and not have counted it yet.
  ~Waiting() override {
    EXPECT_TRUE(eventually([this] { return this->pending() == 0; }));
  }
};
using Kits = testing::Types<Steady, OnLoop, OnShared>;
TYPED_TEST_SUITE(Waiting, Kits);

/// Notes how a wait has ended.
struct Note {
  void operator()(const Error& error) const { errors->push_back(error); }
  std::vector<Error>* errors;
};

TYPED_TEST(Waiting, EndsAtTheDeadlineAndKeepsRunUntilThen) {
  std::vector<Error> errors;
  auto waits = this->make();
  waits.expires_after(20ms);
  const auto deadline = waits.expiry();
  waits.async_wait(Note{&errors});
  EXPECT_GE(this->loop.run(), 1u);
  EXPECT_GE(steady_clock::now(), deadline);
  EXPECT_EQ(errors, std::vector<Error>{Error()});
}

TYPED_TEST(Waiting, NeverEndsInsideTheCallThatBeginsIt) {
  std::vector<Error> errors;
  auto waits = this->make();
  waits.expires_at(steady_clock::now() - 1s);
  waits.async_wait(Note{&errors});
  std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(errors.empty());
  this->loop.run();
  EXPECT_EQ(errors, std::vector<Error>{Error()});
}

TYPED_TEST(Waiting, IsAbortedByCancelWhichReturnsHowMany) {
  std::vector<Error> errors;
  auto waits = this->make();
  waits.expires_after(kFar);
  EXPECT_EQ(waits.cancel(), 0u);
  for (int i = 0; i < 3; ++i) waits.async_wait(Note{&errors});
  EXPECT_EQ(waits.cancel(), 3u);
  EXPECT_EQ(waits.cancel(), 0u);
  EXPECT_TRUE(errors.empty());
  this->loop.run();  // returns: nothing is left to wait for
  EXPECT_EQ(errors, std::vector<Error>(3, kAborted));
}

TYPED_TEST(Waiting, CancelOneEndsTheOldest) {
  std::vector<int> ended;
  auto waits = this->make();
  waits.expires_after(kFar);
  for (int i = 0; i < 3; ++i) {
    waits.async_wait([&ended, i](const Error& error) {
      EXPECT_EQ(error, kAborted);
      ended.push_back(i);
    });
  }
  EXPECT_EQ(waits.cancel_one(), 1u);
  EXPECT_EQ(waits.cancel_one(), 1u);
  this->loop.poll();
  EXPECT_EQ(ended, (std::vector<int>{0, 1}));
  EXPECT_EQ(waits.cancel(), 1u);
  this->loop.run();
}

TYPED_TEST(Waiting, ToChangeTheExpiryCancels) {
  std::vector<Error> errors;
  auto waits = this->make();
  EXPECT_EQ(waits.expires_after(kFar), 0u);
  waits.async_wait(Note{&errors});
  EXPECT_EQ(waits.expires_after(1ms), 1u);
  waits.async_wait(Note{&errors});
  this->loop.run();
  EXPECT_EQ(errors, (std::vector<Error>{kAborted, Error()}));
}

TYPED_TEST(Waiting, ToChangeTheExpiryLeavesNothingToWaitFor) {
  std::vector<Error> errors;
  auto waits = this->make();
  waits.expires_after(kFar);
  waits.async_wait(Note{&errors});
  EXPECT_EQ(waits.expires_after(kFar), 1u);
  EXPECT_EQ(waits.expires_after(kFar), 0u);
  this->loop.run();
  EXPECT_EQ(errors, std::vector<Error>{kAborted});
  EXPECT_EQ(this->pending(), 0);
}

TYPED_TEST(Waiting, IsAbortedWhenTheTimerObjectGoes) {
  std::vector<Error> errors;
  {
    auto waits = this->make();
    waits.expires_after(kFar);
    waits.async_wait(Note{&errors});
  }
  EXPECT_TRUE(errors.empty());
  this->loop.run();
  EXPECT_EQ(errors, std::vector<Error>{kAborted});
}

TYPED_TEST(Waiting, ALoopThatRanDryGoesOnWithTheNextWait) {
  std::vector<Error> errors;
  auto waits = this->make();
  for (std::size_t i = 1; i != 4; ++i) {
    waits.expires_after(2ms);
    waits.async_wait(Note{&errors});
    this->loop.run();
    this->loop.restart();
    EXPECT_EQ(errors, std::vector<Error>(i));
  }
}

TYPED_TEST(Waiting, RunsOnTheExecutorOfTheHandlerWhichHasWorkUntilThen) {
  host::io_context other;
  std::thread::id ran_on;
  auto waits = this->make();
  waits.expires_after(5ms);
  waits.async_wait(host::bind_executor(other.get_executor(), [&](const Error& error) {
    EXPECT_FALSE(error);
    ran_on = std::this_thread::get_id();
  }));
  std::thread thread([&] { other.run(); });
  const std::thread::id expected = thread.get_id();
  this->loop.run();
  thread.join();
  EXPECT_EQ(ran_on, expected);
}

/// Counts the allocations through it.
template <class T>
struct Counting {
  using value_type = T;
  explicit Counting(std::atomic<int>* bytes, std::atomic<int>* calls) : left(bytes), made(calls) {}
  template <class U>
  Counting(const Counting<U>& other) : left(other.left), made(other.made) {}  // NOLINT(google-explicit-constructor)
  T* allocate(std::size_t n) {
    ++*made;
    *left += static_cast<int>(n * sizeof(T));
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* memory, std::size_t n) {
    *left -= static_cast<int>(n * sizeof(T));
    std::allocator<T>().deallocate(memory, n);
  }
  template <class U>
  bool operator==(const Counting<U>& other) const {
    return left == other.left;
  }

  std::atomic<int>* left;
  std::atomic<int>* made;
};

TYPED_TEST(Waiting, UsesTheAllocatorOfTheHandlerAndFreesBeforeTheCall) {
  struct Handler {
    using allocator_type = Counting<std::byte>;
    allocator_type get_allocator() const { return Counting<std::byte>(left, made); }
    void operator()(const Error&) const {
      EXPECT_EQ(*left, 0);
      ++*called;
    }
    std::atomic<int>* left;
    std::atomic<int>* made;
    int* called;
  };
  std::atomic<int> left{0};
  std::atomic<int> made{0};
  int called = 0;
  auto waits = this->make();
  waits.expires_after(1ms);
  waits.async_wait(Handler{&left, &made, &called});
  EXPECT_GT(left, 0);
  this->loop.run();
  EXPECT_EQ(called, 1);
  EXPECT_GT(made, 0);
  EXPECT_EQ(left, 0);
  waits.expires_after(kFar);
  waits.async_wait(Handler{&left, &made, &called});
  waits.cancel();
  this->loop.restart();
  this->loop.run();
  EXPECT_EQ(called, 2);
  EXPECT_EQ(left, 0);
}

TYPED_TEST(Waiting, UsesTheAllocatorOfTheHandlerOnAnotherExecutorToo) {
  struct Handler {
    using allocator_type = Counting<std::byte>;
    allocator_type get_allocator() const { return Counting<std::byte>(left, made); }
    void operator()(const Error& error) const {
      EXPECT_FALSE(error);
      ++*called;
    }
    std::atomic<int>* left;
    std::atomic<int>* made;
    int* called;
  };
  std::atomic<int> left{0};
  std::atomic<int> made{0};
  int called = 0;
  const auto strand = host::make_strand(this->loop);
  auto waits = this->make();
  waits.expires_after(1ms);
  waits.async_wait(host::bind_executor(strand, Handler{&left, &made, &called}));
  this->loop.run();
  EXPECT_EQ(called, 1);
  EXPECT_GT(made, 0);
  EXPECT_EQ(left, 0);
}

TYPED_TEST(Waiting, IsAbortedByItsCancellationSlot) {
  std::vector<Error> errors;
  host::cancellation_signal signal;
  auto waits = this->make();
  waits.expires_after(kFar);
  for (const auto type :
       {host::cancellation_type::terminal, host::cancellation_type::partial, host::cancellation_type::total}) {
    waits.async_wait(host::bind_cancellation_slot(signal.slot(), Note{&errors}));
    signal.emit(host::cancellation_type::none);
    this->loop.poll();
    EXPECT_TRUE(errors.empty()) << "cancelled by none";
    signal.emit(type);
    EXPECT_TRUE(errors.empty());
    this->loop.run();
    this->loop.restart();
    EXPECT_EQ(errors, std::vector<Error>{kAborted});
    errors.clear();
    signal.emit(type);  // does nothing: the wait has ended
  }
}

TYPED_TEST(Waiting, TakesAHandlerThatCanOnlyBeMoved) {
  auto ended = std::make_unique<bool>(false);
  bool* const seen = ended.get();
  auto waits = this->make();
  waits.expires_after(1ms);
  bool called = false;
  waits.async_wait([ended = std::move(ended), seen, &called](const Error&) {
    EXPECT_EQ(ended.get(), seen);
    called = true;
  });
  this->loop.run();
  EXPECT_TRUE(called);
}

TYPED_TEST(Waiting, GivesAFuture) {
  auto waits = this->make();
  waits.expires_after(5ms);
  std::future<void> ended = waits.async_wait(host::use_future);
  this->loop.run();
  EXPECT_NO_THROW(ended.get());
  waits.expires_after(kFar);
  ended = waits.async_wait(host::use_future);
  waits.cancel();
  this->loop.restart();
  this->loop.run();
  EXPECT_THROW(ended.get(), std::exception);
}

TYPED_TEST(Waiting, BeginsWhenADeferredOneIsAsked) {
  std::vector<Error> errors;
  auto waits = this->make();
  waits.expires_after(1ms);
  auto operation = waits.async_wait(kDeferred);
  EXPECT_EQ(this->loop.run(), 0u);
  std::move(operation)(Note{&errors});
  this->loop.restart();
  this->loop.run();
  EXPECT_EQ(errors, std::vector<Error>{Error()});
}

template <class Waits>
host::awaitable<void> wait_twice(Waits& waits, int& steps) {
  waits.expires_after(2ms);
  co_await waits.async_wait(host::use_awaitable);
  ++steps;
  waits.expires_after(kFar);
  try {
    co_await waits.async_wait(host::use_awaitable);
  } catch (...) {
    ++steps;
    throw;
  }
}

TYPED_TEST(Waiting, IsAwaitedByACoroutineWhoseCancellationEndsIt) {
  int steps = 0;
  bool failed = false;
  host::cancellation_signal signal;
  auto waits = this->make();
  auto later = this->make();
  std::function<void()> cancel_the_second = [&] {
    later.expires_after(5ms);
    later.async_wait(
        [&](const Error&) { steps == 0 ? cancel_the_second() : signal.emit(host::cancellation_type::terminal); });
  };
  cancel_the_second();
  host::co_spawn(
      this->loop, wait_twice(waits, steps),
      host::bind_cancellation_slot(signal.slot(), [&](const std::exception_ptr& e) { failed = e != nullptr; }));
  this->loop.run();
  EXPECT_EQ(steps, 2);
  EXPECT_TRUE(failed);
}

TYPED_TEST(Waiting, GoesUncalledWithTheContext) {
  const auto kept = std::make_shared<int>();
  bool called = false;
  {
    TypeParam kit;
    auto waits = kit.make();
    waits.expires_after(kFar);
    waits.async_wait([&called, kept](const Error&) { called = true; });
    EXPECT_EQ(kept.use_count(), 2);
  }
  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_FALSE(called);
}

TYPED_TEST(Waiting, EndsOnceHoweverCancelAndExpiryRace) {
  constexpr int kRounds = 3'000;
  std::atomic<int> ended{0};
  auto work = host::make_work_guard(this->loop);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back([this] { this->loop.run(); });
  run_together(2, [&](int thread) {
    std::mt19937 random(static_cast<std::uint32_t>(thread));
    auto waits = this->make();
    for (int i = 0; i < kRounds; ++i) {
      waits.expires_after(std::chrono::microseconds(random() % 2000));
      waits.async_wait([&](const Error&) { ++ended; });
      if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
      if (random() % 2 == 0) waits.cancel();
    }
  });
  work.reset();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, 2 * kRounds);
}

TYPED_TEST(Waiting, EndsOnceHoweverItsSlotAndExpiryRace) {
  constexpr int kRounds = 2'000;
  int ended = 0;
  auto strand = host::make_strand(this->loop);
  host::cancellation_signal signal;
  auto waits = this->make();
  std::mt19937 random(1);
  std::function<void()> next = [&] {
    if (ended == kRounds) return;
    waits.expires_after(std::chrono::microseconds(random() % 1500));
    waits.async_wait(host::bind_cancellation_slot(signal.slot(), host::bind_executor(strand, [&](const Error&) {
                                                    ++ended;
                                                    next();
                                                  })));
    host::post(strand, [&] {
      if (random() % 2 == 0) signal.emit(host::cancellation_type::total);
    });
  };
  host::post(strand, next);
  std::thread other([this] { this->loop.run(); });
  this->loop.run();
  other.join();
  EXPECT_EQ(ended, kRounds);
}

TYPED_TEST(Waiting, ACancelOnAnotherThreadIsHeardBeforeTheLoopEnds) {
  for (int round = 0; round < 1'000; ++round) {
    std::vector<Error> errors;
    auto waits = this->make();
    waits.expires_after(kFar);
    waits.async_wait(Note{&errors});
    std::thread thread([this] { this->loop.run(); });
    if (round % 2 == 0) std::this_thread::yield();
    EXPECT_EQ(waits.cancel(), 1u);
    thread.join();
    ASSERT_EQ(errors, std::vector<Error>{kAborted});
    this->loop.restart();
  }
}

TYPED_TEST(Waiting, OneThatIsNeverDueIsWorkToo) {
  std::vector<Error> errors;
  auto waits = this->make();
  waits.expires_at(steady_clock::time_point::max());
  waits.async_wait(Note{&errors});
  std::atomic<bool> returned{false};
  std::thread thread([&] {
    this->loop.run();
    returned = true;
  });
  std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(returned);
  waits.cancel();
  thread.join();
  EXPECT_EQ(errors, std::vector<Error>{kAborted});
}

TYPED_TEST(Waiting, ItsHandlerMayWaitAgainAndDestroyTheTimerBeforeTheFirstCallHasReturned) {
  using Waits = typename TypeParam::Waits;
  auto work = host::make_work_guard(this->loop);
  std::thread thread([this] { this->loop.run(); });
  for (int round = 0; round < 1'000; ++round) {
    std::promise<void> over;
    auto waits = std::unique_ptr<Waits>(new Waits(this->make()));
    int left = round % 3;
    std::function<void(const Error&)> next = [&](const Error& error) {
      EXPECT_FALSE(error);
      if (left-- == 0) {
        waits.reset();
        return over.set_value();
      }
      waits->expires_after(0ms);
      waits->async_wait(next);
    };
    waits->expires_at(steady_clock::now());
    Waits& first = *waits;
    first.async_wait(next);
    over.get_future().wait();
  }
  work.reset();
  thread.join();
}

// --- async_wait_for, async_wait_until ------------------------------------------------------------------------------

struct WaitOnManualTimer : testing::Test {
  std::vector<Error> errors;
  ManualTimer timer{1ms, steady_clock::time_point(1h)};
  host::io_context loop;
};

TEST_F(WaitOnManualTimer, EndsWhenTheTimerSaysSo) {
  async_wait_for(timer, loop.get_executor(), 5ms, Note{&errors});
  async_wait_until(timer, loop.get_executor(), timer.now() + 7ms, Note{&errors});
  timer.advance(4ms);
  EXPECT_EQ(loop.poll(), 0u);
  timer.advance(1ms);
  EXPECT_TRUE(errors.empty()) << "called by the timer instead of the loop";
  EXPECT_EQ(loop.poll(), 1u);
  timer.advance(2ms);
  EXPECT_EQ(loop.run(), 1u);
  EXPECT_EQ(errors, std::vector<Error>(2));
}

TEST_F(WaitOnManualTimer, IsAbortedByTheEndOfTheTimer) {
  {
    ManualTimer ends;
    async_wait_for(ends, loop.get_executor(), kFar, Note{&errors});
  }
  async_wait_for(timer, loop.get_executor(), kFar, Note{&errors});
  std::vector<Timeout> left = timer.stop();
  ASSERT_EQ(left.size(), 1u);
  left[0].task().run(left[0]);  // does nothing
  async_wait_for(timer, loop.get_executor(), 1ms, Note{&errors});
  EXPECT_TRUE(errors.empty());
  EXPECT_EQ(loop.run(), 3u);
  EXPECT_EQ(errors, std::vector<Error>(3, kAborted));
}

TEST_F(WaitOnManualTimer, AnExpirySaturatesAlsoBeforeTheZeroOfTheClock) {
  ManualTimer before_zero{1ms, steady_clock::time_point(-1h)};
  net::WheelTimer wait(loop, before_zero);
  constexpr std::chrono::nanoseconds kMost = (std::chrono::nanoseconds::max)();
  wait.expires_after(kMost);
  EXPECT_EQ(wait.expiry(), steady_clock::time_point(kMost - 1h));
  wait.expires_after(-2h);
  EXPECT_EQ(wait.expiry(), steady_clock::time_point(-3h));
  wait.expires_after(-kMost);
  EXPECT_EQ(wait.expiry(), (steady_clock::time_point::min)());
  net::WheelTimer later(loop, timer);
  later.expires_after(kMost);
  EXPECT_EQ(later.expiry(), (steady_clock::time_point::max)());
  later.expires_after(-kMost);
  EXPECT_EQ(later.expiry(), steady_clock::time_point(1h - kMost));
}

/// Returns the messages of two awaited operations with a NaN.
host::awaitable<void> await_nan(hwt::Timer& timer, std::vector<std::string>& messages) {
  const auto executor = co_await host::this_coro::executor;
  try {
    co_await async_wait_for(timer, executor, kNanDelay, host::use_awaitable);
  } catch (const std::invalid_argument& refusal) {
    messages.emplace_back(refusal.what());
  }
  try {
    co_await async_wait_for(timer, executor, 1ms, net::cancel_after(timer, kNanDelay, host::use_awaitable));
  } catch (const std::invalid_argument& refusal) {
    messages.emplace_back(refusal.what());
  }
}

TEST_F(WaitOnManualTimer, ANanIsThrownIntoTheCoroutineThatAwaits) {
  std::vector<std::string> messages;
  host::co_spawn(loop, await_nan(timer, messages), host::detached);
  loop.run();
  EXPECT_EQ(messages, (std::vector<std::string>{"async_wait_for: delay: NaN (expected: a number)",
                                                "cancel_after: delay: NaN (expected: a number)"}));
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

TEST_F(WaitOnManualTimer, OnEarlierMayBeginAndCancelWaits) {
  int calls = 0;
  net::WheelTimer other(loop, timer);
  timer.on_earlier([&] {
    if (++calls != 1) return;
    async_wait_for(timer, loop.get_executor(), 1h, Note{&errors});
    other.expires_after(1h);
    other.async_wait(Note{&errors});
    EXPECT_EQ(other.cancel(), 1u);
  });
  async_wait_for(timer, loop.get_executor(), 1s, Note{&errors});
  EXPECT_EQ(calls, 1);
  timer.on_earlier({});
  timer.advance(1h);
  loop.run();
  EXPECT_EQ(errors, (std::vector<Error>{kAborted, Error(), Error()}));
}

TEST_F(WaitOnManualTimer, ANanIsTheCallersFault) {
  EXPECT_THROW(async_wait_for(timer, loop.get_executor(), kNanDelay, Note{&errors}), std::invalid_argument);
  EXPECT_EQ(loop.run(), 0u);
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

/// Counts `*copies` down with each copy, and throws at zero. It has no move constructor, so a move is a copy.
struct Throwing {
  using allocator_type = Counting<std::byte>;

  Throwing(int* copies_left, std::atomic<int>* bytes, std::atomic<int>* calls)
      : copies(copies_left), left(bytes), made(calls) {}
  Throwing(const Throwing& other) : Throwing(other.copies, other.left, other.made) {
    if (--*copies == 0) throw std::runtime_error("no more copies");
  }
  Throwing& operator=(const Throwing&) = delete;
  allocator_type get_allocator() const { return Counting<std::byte>(left, made); }
  void operator()(const Error& error) const { EXPECT_FALSE(error); }

  int* copies;
  std::atomic<int>* left;
  std::atomic<int>* made;
};

TEST_F(WaitOnManualTimer, LeavesNothingWhereverTheHandlerThrows) {
  host::io_context other;
  std::atomic<int> left{0};
  std::atomic<int> made{0};
  const auto begin = [&](auto bind) {
    int allocations = 0;  // that were made before a copy threw
    for (int at = 1;; ++at) {
      ASSERT_LT(at, 100) << "there is no end to it";
      int copies = -1;
      auto handler = bind(Throwing(&copies, &left, &made));
      copies = at;
      made = 0;
      try {
        async_wait_for(timer, loop.get_executor(), 1ms, handler);
      } catch (const std::runtime_error&) {
        allocations += made;
        ASSERT_EQ(left, 0) << "thrown by copy " << at;
        ASSERT_EQ(timer.pending_timeouts(), 0);
        ASSERT_EQ(loop.run() + other.run(), 0u);
        loop.restart();
        other.restart();
        continue;
      }
      copies = -1;
      timer.advance(1ms);
      loop.run();
      other.run();
      break;
    }
    EXPECT_EQ(left, 0);
    EXPECT_GT(allocations, 0) << "no copy has thrown after an allocation";
  };
  begin([](const Throwing& handler) { return handler; });
  begin([&](const Throwing& handler) { return host::bind_executor(other.get_executor(), handler); });
}

/// A handler whose cancellation slot has no memory.
struct WithSlotWithoutMemory {
  struct cancellation_slot_type {  // NOLINT(readability-identifier-naming): Asio's name
    bool is_connected() const noexcept { return true; }
    template <class Canceller, class... Args>
    Canceller& emplace(Args&&...) {
      throw std::bad_alloc();
    }
    void clear() { ADD_FAILURE() << "nothing was put into the slot"; }
  };
  cancellation_slot_type get_cancellation_slot() const noexcept { return {}; }
  void operator()(const Error&) const { ADD_FAILURE() << "called although the wait threw"; }

  std::shared_ptr<int> kept;
};

TEST_F(WaitOnManualTimer, LeavesNothingIfTheSlotOfTheHandlerThrows) {
  const auto kept = std::make_shared<int>();
  EXPECT_THROW(async_wait_for(timer, loop.get_executor(), 1ms, WithSlotWithoutMemory{kept}), std::bad_alloc);
  ASSERT_EQ(kept.use_count(), 1) << "the handler is still there";
  EXPECT_EQ(timer.pending_timeouts(), 0);
  EXPECT_EQ(loop.run(), 0u);
}

TEST_F(WaitOnManualTimer, ItsContextMayGoFirst) {
  const auto kept = std::make_shared<int>();
  auto goes = std::make_unique<host::io_context>();
  async_wait_for(timer, goes->get_executor(), 1ms, [kept](const Error&) { ADD_FAILURE(); });
  EXPECT_EQ(kept.use_count(), 2);
  goes.reset();
  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_EQ(timer.pending_timeouts(), 0);
  EXPECT_EQ(timer.advance(1s), 0u);
}

TEST_F(WaitOnManualTimer, ASystemExecutorIsAnIoExecutorToo) {
  std::promise<Error> ended;
  async_wait_for(timer, host::system_executor(), 1ms, [&](const Error& error) { ended.set_value(error); });
  timer.advance(1ms);
  EXPECT_EQ(ended.get_future().get(), Error());
}

// --- WheelTimer, whose expiry changes ------------------------------------------------------------------------------

struct PuttingOff : WaitOnManualTimer {
  ~PuttingOff() override { EXPECT_EQ(timer.pending_timeouts(), 0); }
  /// Leaves a timeout without a wait.
  void begin_and_put_off() {
    waits->expires_after(5ms);
    waits->async_wait(Note{&errors});
    EXPECT_EQ(waits->expires_after(5ms), 1u);
    EXPECT_EQ(timer.pending_timeouts(), 1);
  }

  std::optional<net::WheelTimer> waits{std::in_place, loop, timer};
};

TEST_F(PuttingOff, AWaitEndsByTheLatestExpiryWhetherLaterOrEarlier) {
  for (const auto delay : {5ms, 20ms, 10ms}) {
    waits->expires_after(delay);
    waits->async_wait(Note{&errors});
    timer.advance(0ms);
  }
  timer.advance(9ms);
  loop.poll();
  EXPECT_EQ(errors, std::vector<Error>(2, kAborted));
  timer.advance(1ms);
  loop.poll();
  EXPECT_EQ(errors, (std::vector<Error>{kAborted, kAborted, Error()}));
}

TEST_F(PuttingOff, TheNextWaitHasTheTimeoutOfTheOneBefore) {
  HashedWheelTimer shared(1ms);
  net::WheelTimer deadline(loop, shared);
  for (int i = 0; i < 1'000; ++i) {
    deadline.expires_after(i % 2 == 0 ? kFar : 2 * kFar);
    deadline.async_wait(Note{&errors});
    if (i % 100 == 0) loop.poll();
  }
  deadline.cancel();
  loop.run();
  EXPECT_EQ(shared.stats().scheduled, 1u);
  EXPECT_EQ(errors, std::vector<Error>(1'000, kAborted));
}

TEST_F(PuttingOff, ATimeoutWithoutAWaitExpiresUnheard) {
  begin_and_put_off();
  EXPECT_EQ(timer.advance(10ms), 1u);
  EXPECT_EQ(timer.pending_timeouts(), 0);
  EXPECT_EQ(loop.poll(), 1u);
  EXPECT_EQ(errors, std::vector<Error>{kAborted});
  waits->async_wait(Note{&errors});  // its expiry has passed
  timer.advance(1ms);
  loop.restart();
  EXPECT_EQ(loop.run(), 1u);
  EXPECT_EQ(errors, (std::vector<Error>{kAborted, Error()}));
}

TEST_F(PuttingOff, ATimeoutWithoutAWaitGoesWithTheHandlerOfTheLast) {
  begin_and_put_off();
  EXPECT_EQ(loop.run(), 1u);
  EXPECT_EQ(timer.pending_timeouts(), 0);
  waits->async_wait(Note{&errors});
  timer.advance(5ms);
  loop.restart();
  EXPECT_EQ(loop.run(), 1u);
  EXPECT_EQ(errors, (std::vector<Error>{kAborted, Error()}));
}

TEST_F(PuttingOff, CancelAndTheDestructorTakeOutATimeoutWithoutAWait) {
  begin_and_put_off();
  EXPECT_EQ(waits->cancel(), 0u);
  EXPECT_EQ(timer.pending_timeouts(), 0);
  begin_and_put_off();
  waits.reset();
  EXPECT_EQ(timer.pending_timeouts(), 0);
  EXPECT_EQ(loop.run(), 2u);
  EXPECT_EQ(errors, std::vector<Error>(2, kAborted));
}

TEST_F(PuttingOff, ATimerThatEndsMeanwhileRefusesTheNextWait) {
  begin_and_put_off();
  std::vector<Timeout> left = timer.stop();
  ASSERT_EQ(left.size(), 1u);
  waits->async_wait(Note{&errors});
  left[0].task().run(left[0]);  // does nothing
  EXPECT_EQ(loop.run(), 2u);
  EXPECT_EQ(errors, std::vector<Error>(2, kAborted));
}

TEST_F(PuttingOff, AContextThatGoesTakesATimeoutWithoutAWaitAlong) {
  auto goes = std::make_unique<host::io_context>();
  // Its handler is its last owner.
  auto deadline = std::make_shared<net::WheelTimer>(*goes, timer);
  deadline->expires_after(kFar);
  deadline->async_wait([deadline](const Error&) { ADD_FAILURE(); });
  deadline->expires_after(kFar);
  deadline.reset();
  EXPECT_EQ(timer.pending_timeouts(), 1);
  goes.reset();
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

TEST_F(PuttingOff, TheNextWaitMayHaveASlotOrBeOneOfSeveral) {
  host::cancellation_signal signal;
  begin_and_put_off();
  waits->async_wait(host::bind_cancellation_slot(signal.slot(), Note{&errors}));
  signal.emit(host::cancellation_type::terminal);
  waits->expires_after(5ms);
  EXPECT_EQ(timer.pending_timeouts(), 0);
  begin_and_put_off();
  for (int i = 0; i < 3; ++i) waits->async_wait(Note{&errors});
  EXPECT_EQ(waits->cancel_one(), 1u);
  EXPECT_EQ(timer.pending_timeouts(), 2);
  EXPECT_EQ(waits->expires_after(5ms), 2u);
  EXPECT_EQ(timer.pending_timeouts(), 0);
  loop.run();
  EXPECT_EQ(errors, std::vector<Error>(6, kAborted));
}

TEST_F(PuttingOff, EachWaitEndsOnceAndNotEarlyHoweverExpiryAndTheNextRace) {
  constexpr int kRounds = 20'000;
  std::atomic<int> ended{0};
  std::atomic<int> expired{0};
  std::atomic<bool> over{false};
  auto work = host::make_work_guard(loop);
  std::thread runs([&] { loop.run(); });
  std::thread turns([&] {
    for (; !over; std::this_thread::yield()) timer.advance(1ms);
  });
  std::mt19937 random(1);
  int cancelled = 0;
  for (int i = 1; i <= kRounds; ++i) {
    const bool far = random() % 2 == 0 && i != kRounds;
    cancelled += static_cast<int>(waits->expires_at(timer.now() + (far ? 10'000h : (random() % 3) * 1ms)));
    if (random() % 4 == 0) std::this_thread::yield();
    waits->async_wait([&, far](const Error& error) {
      if (!error) ++expired;
      EXPECT_TRUE(error || !far);
      ++ended;
    });
  }
  EXPECT_TRUE(eventually([&] { return ended == kRounds; }));
  over = true;
  turns.join();
  work.reset();
  runs.join();
  EXPECT_EQ(expired + cancelled, kRounds);
}

// --- Executors and memory ------------------------------------------------------------------------------------------

/// An executor that is type-erased may be any, not only that of an io_context.
TEST_F(WaitOnManualTimer, IsCalledOnAStrandOfAnyType) {
  const auto strand = host::make_strand(loop);
  const auto strand_of_any = host::make_strand(host::any_io_executor(loop.get_executor()));
  int called = 0;
  const auto on = [&](const auto& right) {
    return [&called, right](const Error&) {
      EXPECT_TRUE(right.running_in_this_thread());
      ++called;
    };
  };
  async_wait_for(timer, host::any_io_executor(strand), 1ms, on(strand));
  async_wait_for(timer, host::any_io_executor(strand_of_any), 1ms, on(strand_of_any));
  async_wait_for(timer, loop.get_executor(), 1ms, host::bind_executor(host::any_io_executor(strand), on(strand)));
  net::WheelTimer waits(host::any_io_executor(strand), timer);
  waits.expires_after(1ms);
  waits.async_wait(on(strand));
  timer.advance(1ms);
  loop.run();
  EXPECT_EQ(called, 4);
}

/// Memory that belongs to a session, such as a buffer in it.
template <class T>
struct SessionMemory {
  using value_type = T;
  explicit SessionMemory(int* in_use) : blocks(in_use) {}
  template <class U>
  SessionMemory(const SessionMemory<U>& other) : blocks(other.blocks) {}  // NOLINT(google-explicit-constructor)
  T* allocate(std::size_t n) {
    ++*blocks;
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* memory, std::size_t n) {
    --*blocks;
    std::allocator<T>().deallocate(memory, n);
  }
  template <class U>
  bool operator==(const SessionMemory<U>& other) const {
    return blocks == other.blocks;
  }
  int* blocks;
};

/// A handler that owns its session, and lets it go when it is called.
struct OwnsItsSession {
  using allocator_type = SessionMemory<std::byte>;
  explicit OwnsItsSession(int& blocks)
      : session(&blocks, [](const int* left) { EXPECT_EQ(*left, 0) << "memory of a session that is gone"; }),
        in_use(&blocks) {}
  allocator_type get_allocator() const noexcept { return allocator_type(in_use); }
  void operator()(const Error&) { session.reset(); }

  std::shared_ptr<int> session;
  int* in_use;
};

TEST_F(WaitOnManualTimer, UsesNoMemoryOfAHandlerThatIsGone) {
  int blocks = 0;
  const auto begin = [&](host::io_context& context) {
    async_wait_for(timer, context.get_executor(), 1ms, OwnsItsSession(blocks));
    EXPECT_GT(blocks, 0);
  };
  {
    host::io_context goes;
    begin(goes);
  }
  {
    host::io_context goes;
    begin(goes);
    timer.advance(1ms);  // posts the completion
  }
  {
    host::io_context goes;
    net::WheelTimer waits(goes, timer);
    waits.expires_after(1ms);
    waits.async_wait(OwnsItsSession(blocks));
    waits.cancel();
  }
  EXPECT_EQ(blocks, 0);
}

TEST_F(WaitOnManualTimer, CancelAfterUsesNoMemoryOfItsHandlerWhenThatIsCalled) {
  int blocks = 0;
  for (const auto limit : {1ms, 2ms, 1000ms}) {
    async_wait_for(timer, loop.get_executor(), 2ms, net::cancel_after(timer, limit, OwnsItsSession(blocks)));
    timer.advance(2ms);
    loop.run();
    loop.restart();
    EXPECT_EQ(blocks, 0);
  }
}

/// The context of the wait's strand is destroyed before the handler's context calls the handler.
TEST_F(WaitOnManualTimer, IsCalledWhenTheContextOfItsStrandIsGone) {
  bool called = false;
  auto goes = std::make_unique<host::io_context>();
  async_wait_for(timer, host::make_strand(*goes), 1ms,
                 host::bind_executor(loop.get_executor(), [&](const Error&) { called = true; }));
  timer.advance(1ms);
  goes->run();
  goes.reset();
  loop.run();
  EXPECT_TRUE(called);
}

// --- Moves and constructors of a WheelTimer ------------------------------------------------------------------------

TYPED_TEST(Waiting, AMoveTakesTheWaitsAlongAndLeavesAUsableTimer) {
  std::vector<Error> errors;
  auto waits = this->make(kFar);
  const auto expiry = waits.expiry();
  waits.async_wait(Note{&errors});
  waits.async_wait(Note{&errors});
  auto moved = std::move(waits);
  EXPECT_EQ(moved.expiry(), expiry);
  EXPECT_TRUE(moved.get_executor() == this->loop.get_executor());
  EXPECT_EQ(waits.cancel(), 0u);  // NOLINT(bugprone-use-after-move): it can be used
  this->loop.poll();
  EXPECT_TRUE(errors.empty());
  EXPECT_EQ(moved.cancel(), 2u);
  this->loop.restart();
  this->loop.run();
  EXPECT_EQ(errors, std::vector<Error>(2, kAborted));
  waits.expires_after(1ms);
  waits.async_wait(Note{&errors});
  this->loop.restart();
  this->loop.run();
  EXPECT_EQ(errors, (std::vector<Error>{kAborted, kAborted, Error()}));
}

TYPED_TEST(Waiting, AMoveDoesNotEndAWaitThatThenExpires) {
  std::vector<Error> errors;
  auto waits = std::make_optional(this->make(5ms));
  waits->async_wait(Note{&errors});
  auto moved = std::move(*waits);
  waits.reset();
  this->loop.run();
  EXPECT_EQ(errors, std::vector<Error>{Error()});
  moved.expires_after(1ms);  // once more, with a timeout of the first wait or another one
  moved.async_wait(Note{&errors});
  this->loop.restart();
  this->loop.run();
  EXPECT_EQ(errors, std::vector<Error>(2, Error()));
}

TYPED_TEST(Waiting, AMoveAssignmentCancelsTheWaitsOfItsTarget) {
  std::vector<Error> ended;
  std::vector<Error> taken;
  auto target = this->make(kFar);
  auto source = this->make(5ms);
  target.async_wait(Note{&ended});
  source.async_wait(Note{&taken});
  const auto expiry = source.expiry();
  target = std::move(source);
  EXPECT_EQ(target.expiry(), expiry);
  this->loop.run();
  EXPECT_EQ(ended, std::vector<Error>{kAborted});
  EXPECT_EQ(taken, std::vector<Error>{Error()});
  EXPECT_EQ(target.cancel(), 0u);
}

TYPED_TEST(Waiting, AVectorOfTimersGrows) {
  std::vector<Error> errors;
  std::vector<typename TestFixture::Waits> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back(this->make(i % 2 == 0 ? std::chrono::nanoseconds(1ms) : std::chrono::nanoseconds(kFar)));
    all.back().async_wait(Note{&errors});
  }
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const auto& waits) { return waits.expiry() > steady_clock::now() + 1min; }),
            all.end());
  EXPECT_EQ(all.size(), 10u);
  this->loop.run();
  EXPECT_EQ(std::count(errors.begin(), errors.end(), kAborted), 10);
  EXPECT_EQ(std::count(errors.begin(), errors.end(), Error()), 10);
}

TYPED_TEST(Waiting, AMoveBetweenACancelAndTheNextWaitKeepsBoth) {
  std::vector<Error> errors;
  auto waits = this->make(kFar);
  waits.async_wait(Note{&errors});
  EXPECT_EQ(waits.expires_after(2ms), 1u);  // may leave a timeout for the next wait
  auto moved = std::move(waits);
  moved.async_wait(Note{&errors});
  this->loop.run();
  EXPECT_EQ(errors, (std::vector<Error>{kAborted, Error()}));
}

TYPED_TEST(Waiting, IsMovedInsideItsHandler) {
  std::vector<Error> errors;
  auto waits = this->make(1ms);
  auto other = this->make();
  waits.async_wait([&](const Error& first) {
    errors.push_back(first);
    other = std::move(waits);
    other.expires_after(1ms);
    other.async_wait(Note{&errors});
  });
  this->loop.run();
  EXPECT_EQ(errors, std::vector<Error>(2, Error()));
}

TYPED_TEST(Waiting, BeginsWithAnExpiry) {
  const auto before = steady_clock::now();
  EXPECT_GE(this->make(20ms).expiry(), before + 20ms);
  EXPECT_EQ(this->make(before + 1h).expiry(), before + 1h);
  std::vector<Error> errors;
  auto waits = this->make(steady_clock::now() - 1s);
  waits.async_wait(Note{&errors});
  this->loop.run();
  EXPECT_EQ(errors, std::vector<Error>{Error()});
}

TYPED_TEST(Waiting, TakesADefaultTokenByRebind) {
  using Token = host::use_awaitable_t<>;
  using Rebound = typename Token::template as_default_on_t<typename TestFixture::Waits>;
  bool woken = false;
  auto waits = this->make(1ms);
  host::co_spawn(
      this->loop,
      [&]() -> host::awaitable<void> {
        Rebound rebound = Token::as_default_on(std::move(waits));
        co_await rebound.async_wait();
        rebound.expires_after(1ms);
        co_await rebound.async_wait();
        woken = true;
      },
      host::detached);
  this->loop.run();
  EXPECT_TRUE(woken);
}

TEST(WheelTimerMoves, GoToAWiderTypeOfExecutor) {
  host::io_context loop;
  ManualTimer timer;
  std::vector<Error> errors;
  net::BasicWheelTimer<host::io_context::executor_type> narrow(loop, timer, 1s);
  narrow.async_wait(Note{&errors});
  net::WheelTimer wide(std::move(narrow));
  EXPECT_TRUE(wide.get_executor() == loop.get_executor());
  timer.advance(2s);
  loop.run();
  EXPECT_EQ(errors, std::vector<Error>{Error()});
  narrow = net::BasicWheelTimer<host::io_context::executor_type>(loop, timer, 1s);
  narrow.async_wait(Note{&errors});
  wide = std::move(narrow);
  EXPECT_EQ(wide.cancel(), 1u);
  loop.restart();
  loop.run();
}

TEST(WheelTimerMoves, BringTheTimerAndTheContextAlong) {
  host::io_context near;
  host::io_context far;
  ManualTimer first;
  ManualTimer second;
  std::vector<Error> errors;
  net::WheelTimer target(near, first, kFar);
  target.async_wait(Note{&errors});
  target = net::WheelTimer(far, second, 1s);
  EXPECT_EQ(first.pending_timeouts(), 0);
  target.async_wait(Note{&errors});
  second.advance(2s);
  EXPECT_EQ(near.run(), 1u);
  EXPECT_EQ(far.run(), 1u);
  EXPECT_EQ(errors, (std::vector<Error>{kAborted, Error()}));
  EXPECT_THROW(net::WheelTimer(near, first, kNanDelay), std::invalid_argument);
}

TEST(CoarseExpiry, OfTheLastPointIsNever) {
  using Coarse = std::chrono::time_point<steady_clock, std::chrono::milliseconds>;
  host::io_context loop;
  ManualTimer timer;
  int ended = 0;
  const auto count = [&](const Error&) { ++ended; };
  net::WheelTimer waits(loop, timer, (Coarse::max)());
  EXPECT_EQ(waits.expiry(), (steady_clock::time_point::max)());
  waits.async_wait(count);
  async_wait_until(timer, loop.get_executor(), (Coarse::max)(), count);
  net::WheelTimer limited(loop, timer, kFar);
  limited.async_wait(net::cancel_after(timer, (Coarse::max)(), count));
  timer.advance(1min);
  loop.poll();
  EXPECT_EQ(ended, 0);
  waits.expires_at((Coarse::min)());
  waits.async_wait(count);
  timer.advance(1s);
  loop.restart();
  loop.poll();
  EXPECT_EQ(ended, 2) << "the cancelled wait and the next one";
}

// --- A handler whose move throws -----------------------------------------------------------------------------------

/// Counts the bytes in use, and the allocations in the next element. Its move throws once `throws` is set.
struct HardToMove {
  using allocator_type = Counting<std::byte>;
  HardToMove(std::array<std::atomic<int>, 2>& in_use, const bool& fails) : left(in_use.data()), throws(&fails) {}
  HardToMove(const HardToMove&) = default;
  HardToMove(HardToMove&& other) : left(other.left), throws(other.throws) {
    if (*throws) throw std::runtime_error("move");
  }
  allocator_type get_allocator() const { return allocator_type(left, left + 1); }
  void operator()(const Error&) const { ADD_FAILURE() << "it could not be moved"; }

  std::atomic<int>* left;
  const bool* throws;
};

TYPED_TEST(Waiting, AHandlerWhoseMoveThrowsLeaksNothing) {
  std::array<std::atomic<int>, 2> in_use{};
  bool throws = false;
  auto waits = this->make(1ms);
  const HardToMove handler(in_use, throws);
  waits.async_wait(handler);
  throws = true;
  EXPECT_GT(in_use[0], 0);
  EXPECT_THROW(this->loop.run(), std::runtime_error);
  EXPECT_EQ(in_use[0], 0) << "bytes of " << in_use[1] << " allocations";
}

TEST(HandlerThatCannotBeMoved, IsDestroyedWithTheContext) {
  std::array<std::atomic<int>, 2> in_use{};
  bool throws = false;
  ManualTimer timer;
  auto loop = std::make_optional<host::io_context>();
  async_wait_for(timer, loop->get_executor(), kFar, HardToMove(in_use, throws));
  EXPECT_GT(in_use[0], 0);
  throws = true;
  loop.reset();
  EXPECT_EQ(in_use[0], 0);
}

// --- Contents of a cancellation slot -------------------------------------------------------------------------------

/// A wait with a slot, whose context goes before the signal does.
struct SlotOfAWait : WaitOnManualTimer {
  auto executor() const { return goes->get_executor(); }
  /// A handler in the slot.
  auto never_called() {
    return host::bind_cancellation_slot(signal->slot(), [kept = kept](const Error&) { ADD_FAILURE(); });
  }
  bool is_occupied() { return signal->slot().has_handler(); }
  void expect_that_it_is_empty() {
    EXPECT_EQ(kept.use_count(), 1) << "the handler is still there";
    EXPECT_FALSE(is_occupied());
    signal->emit(host::cancellation_type::terminal);
    EXPECT_EQ(timer.pending_timeouts(), 0);
  }

  const std::shared_ptr<int> kept = std::make_shared<int>();
  std::optional<host::cancellation_signal> signal{std::in_place};
  std::unique_ptr<host::io_context> goes = std::make_unique<host::io_context>();
};

TEST_F(SlotOfAWait, IsEmptyOnceTheContextHasTakenAWaitAlong) {
  const std::vector<std::function<void()>> begins{
      [this] { async_wait_for(timer, executor(), 1ms, never_called()); },
      [this] { async_wait_until(timer, executor(), timer.now() + 1ms, never_called()); },
      [this] { async_wait_for(timer, host::any_io_executor(executor()), 1ms, never_called()); },
      [this] { async_wait_for(timer, host::make_strand(executor()), 1ms, never_called()); },
      [this] { async_wait_for(timer, executor(), 1ms, host::bind_executor(host::make_strand(*goes), never_called())); },
      [this] { async_wait_for(timer, executor(), 1ms, host::bind_executor(loop.get_executor(), never_called())); }};
  // When the context goes, the completion was not posted yet, or it is in a queue of the context.
  const std::vector<std::function<void()>> ends{[] {}, [this] { timer.advance(1ms); },
                                                [this] { signal->emit(host::cancellation_type::total); }};
  for (const auto& begin : begins) {
    for (const auto& end : ends) {
      begin();
      EXPECT_TRUE(is_occupied());
      end();
      goes.reset();
      expect_that_it_is_empty();
      goes = std::make_unique<host::io_context>();
    }
  }
}

TEST_F(SlotOfAWait, IsEmptyOnceTheContextHasTakenAWaitOfAWheelTimerAlong) {
  const std::vector<std::function<void(net::WheelTimer&)>> ends{
      [](net::WheelTimer&) {}, [this](net::WheelTimer&) { timer.advance(1ms); },
      [](net::WheelTimer& waits) { EXPECT_EQ(waits.cancel(), 1u); },
      [](net::WheelTimer& waits) { EXPECT_EQ(waits.expires_after(2ms), 1u); },
      [this](net::WheelTimer& waits) {
        waits.expires_after(2ms);
        waits.async_wait(never_called());
      }};
  for (const auto& end : ends) {
    for (const bool put_off : {true, false}) {
      for (const bool object_goes_first : {true, false}) {
        auto waits = std::make_shared<net::WheelTimer>(*goes, timer);
        if (put_off) waits->async_wait([kept = kept](const Error&) { ADD_FAILURE(); });
        EXPECT_EQ(waits->expires_after(1ms), put_off ? 1u : 0u);
        waits->async_wait(never_called());
        EXPECT_TRUE(is_occupied());
        end(*waits);
        if (!object_goes_first) host::post(*goes, [waits] {});  // it goes with the context's queue
        waits.reset();
        goes.reset();
        expect_that_it_is_empty();
        goes = std::make_unique<host::io_context>();
      }
    }
  }
}

TEST_F(SlotOfAWait, IsEmptyOnceTheContextHasGoneWhicheverWayTheTimerEndedBefore) {
  {
    ManualTimer ends;
    async_wait_for(ends, executor(), kFar, never_called());
  }
  goes.reset();
  expect_that_it_is_empty();
  goes = std::make_unique<host::io_context>();
  async_wait_for(timer, executor(), kFar, never_called());
  EXPECT_EQ(timer.stop().size(), 1u);
  goes.reset();
  expect_that_it_is_empty();
  goes = std::make_unique<host::io_context>();
  async_wait_for(timer, executor(), kFar, never_called());  // refused
  goes.reset();
  expect_that_it_is_empty();
}

TEST_F(SlotOfAWait, MayBeToldAfterTheContextOfTheWaitHasGoneAndBeforeItsHandlerIsCalledElsewhere) {
  async_wait_for(timer, executor(), 1ms,
                 host::bind_cancellation_slot(signal->slot(), host::bind_executor(loop.get_executor(), Note{&errors})));
  timer.advance(1ms);
  EXPECT_EQ(goes->run(), 1u);  // from here it is in the other queue
  goes.reset();
  signal->emit(host::cancellation_type::terminal);
  EXPECT_EQ(loop.run(), 1u);
  EXPECT_EQ(errors, std::vector<Error>{Error()});
  expect_that_it_is_empty();
}

TEST_F(SlotOfAWait, IsEmptyAfterAWaitThatThrew) {
  EXPECT_THROW(async_wait_for(timer, executor(), kNanDelay, never_called()), std::invalid_argument);
  expect_that_it_is_empty();
  std::atomic<int> left{0};
  std::atomic<int> made{0};
  int copies = -1;
  auto handler = host::bind_cancellation_slot(signal->slot(), Throwing(&copies, &left, &made));
  bool begun = false;
  for (int at = 1; !begun; ++at) {
    ASSERT_LT(at, 100) << "there is no end to it";
    copies = at;
    try {
      async_wait_for(timer, executor(), 1ms, handler);
      begun = true;
    } catch (const std::runtime_error&) {
      expect_that_it_is_empty();
    }
  }
  copies = -1;
  goes.reset();
  expect_that_it_is_empty();
  EXPECT_EQ(left, 0);
}

TEST_F(SlotOfAWait, IsNotTouchedOnceTheSignalHasGone) {
  struct Other {
    void operator()(host::cancellation_type) const {}
  };
  for (const bool called : {true, false}) {
    async_wait_for(timer, executor(), 1ms,
                   host::bind_cancellation_slot(signal->slot(), [called](const Error&) { EXPECT_TRUE(called); }));
    signal.emplace();  // another one in its place
    signal->slot().emplace<Other>();
    timer.advance(1ms);
    EXPECT_EQ(called ? goes->run() : 1u, 1u);
    goes = std::make_unique<host::io_context>();
    EXPECT_TRUE(is_occupied());
  }
}

TEST_F(SlotOfAWait, BelongsToTheWaitThatTookItLast) {
  async_wait_for(timer, executor(), 1ms, host::bind_cancellation_slot(signal->slot(), Note{&errors}));
  async_wait_for(timer, executor(), kFar, host::bind_cancellation_slot(signal->slot(), Note{&errors}));
  timer.advance(1ms);
  goes->poll();
  signal->emit(host::cancellation_type::terminal);
  goes->poll();
  EXPECT_EQ(errors, (std::vector<Error>{Error(), kAborted}));
  expect_that_it_is_empty();
}

/// A wait or another operation with a slot, within cancel_after.
struct SlotOfALimit : SlotOfAWait {
  auto limited(std::shared_ptr<void> with = nullptr) {
    return net::cancel_after(
        timer, 2ms, host::bind_cancellation_slot(signal->slot(), [kept = kept, with](const Error&) { ADD_FAILURE(); }));
  }
  /// Each is an operation of the context that never calls its handler.
  std::vector<std::function<void()>> begins() {
    return {[this] { async_wait_for(timer, executor(), 1ms, limited()); },
            [this] {
              const auto waits = std::make_shared<net::WheelTimer>(*goes, timer);
              waits->async_wait(limited(waits));
            },
            [this] {
              const auto steady = std::make_shared<host::steady_timer>(*goes, kFar);
              steady->async_wait(limited(steady));
            },
            [this] { async_wait_for(timer, executor(), 1ms, net::cancel_after(timer, 3ms, limited())); }};
  }
};

TEST_F(SlotOfALimit, IsEmptyOnceTheContextHasTakenTheOperationAlong) {
  // When the context goes, the end of the limit was not posted yet, or it is in a queue of the context.
  const std::vector<std::function<void()>> ends{[] {}, [this] { timer.advance(3ms); },
                                                [this] { signal->emit(host::cancellation_type::total); }};
  for (const auto& begin : begins()) {
    for (const auto& end : ends) {
      begin();
      EXPECT_TRUE(is_occupied());
      end();
      goes.reset();
      expect_that_it_is_empty();
      goes = std::make_unique<host::io_context>();
    }
  }
}

TEST_F(SlotOfALimit, IsEmptyOnceTheContextHasGoneAfterTheTimer) {
  for (const auto& begin : begins()) begin();
  EXPECT_FALSE(timer.stop().empty());
  goes.reset();
  expect_that_it_is_empty();
}

/// An operation that never begins: it destroys its handler, or throws before it takes that.
struct NeverBegins {
  using executor_type = host::io_context::executor_type;
  executor_type get_executor() const noexcept { return executor; }

  template <class Handler>
  void operator()(Handler&& handler) const {
    if (throws) throw std::runtime_error("not begun");
    const std::decay_t<Handler> taken(std::forward<Handler>(handler));
  }

  executor_type executor;
  bool throws;
};

TEST_F(SlotOfALimit, IsEmptyAndTheLimitGoneWithAnOperationThatDropsItsHandlerOrThrows) {
  auto token = limited();
  using Token = decltype(token);
  host::async_initiate<Token, void(Error)>(NeverBegins{executor(), false}, token);
  EXPECT_FALSE(is_occupied());
  EXPECT_EQ(timer.pending_timeouts(), 0);
  EXPECT_THROW((host::async_initiate<Token, void(Error)>(NeverBegins{executor(), true}, token)), std::runtime_error);
  EXPECT_FALSE(is_occupied());
  EXPECT_EQ(timer.pending_timeouts(), 0);
  signal->emit(host::cancellation_type::terminal);
  EXPECT_EQ(goes->run(), 0u);
}

TEST_F(SlotOfALimit, IsEmptyAndTheLimitGoneWhereverTheHandlerThrows) {
  std::atomic<int> left{0};
  std::atomic<int> made{0};
  int copies = -1;
  int thrown = 0;
  auto handler = host::bind_cancellation_slot(signal->slot(), Throwing(&copies, &left, &made));
  for (bool begun = false; !begun;) {
    ASSERT_LT(thrown, 100) << "there is no end to it";
    auto token = net::cancel_after(timer, kFar, handler);
    copies = thrown + 1;
    try {
      async_wait_for(timer, executor(), 1ms, token);
      begun = true;
    } catch (const std::runtime_error&) {
      ++thrown;
      expect_that_it_is_empty();
      ASSERT_EQ(left, 0);
    }
    copies = -1;
  }
  EXPECT_GT(thrown, 0);
  goes.reset();
  expect_that_it_is_empty();
  EXPECT_EQ(left, 0);
}

// --- Its memory ----------------------------------------------------------------------------------------------------

TEST(WaitOperation, OfALoopIsAmongTheBlocksThatMallocIsQuickFor) {
  struct OneWord {
    void operator()(const Error&) const {}
    void* object;
  };
  using Operation = net::detail::WaitOperation<OneWord, host::io_context::executor_type, true>;
  // Asio stores the size behind the block, and asks for a multiple of 16. malloc has a word before the block. Freed
  // blocks of up to 16 words go into the fast bins of glibc, however many they are.
  const std::size_t asked_for = (sizeof(Operation) + 1 + 15) / 16 * 16;
  EXPECT_LE(asked_for + sizeof(void*), 16 * sizeof(void*));
}

// --- Refused waits -------------------------------------------------------------------------------------------------

/// A timer that calls a function, which throws, instead of scheduling.
struct Refusing final : hwt::Timer {
  explicit Refusing(std::function<void()> by) : refuse(std::move(by)) {}
  std::vector<Timeout> stop() override { return {}; }
  std::int64_t pending_timeouts() const noexcept override { return 0; }
  steady_clock::time_point now() const noexcept override { return {}; }
  hwt::detail::Scheduled schedule(const hwt::detail::TaskSource&, hwt::detail::When) override {
    refuse();
    return {};
  }
  std::function<void()> refuse;
};

TEST(WaitRefused, CompletesWithWhatItWasRefusedFor) {
  std::vector<Error> errors;
  host::io_context loop;
  HashedWheelTimer full(hwt::Options{.max_pending_timeouts = 1});
  const Timeout first = full.new_timeout([] {}, kFar);
  Refusing no_memory([] { throw std::bad_alloc(); });
  Refusing no_thread([] { throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)); });
  async_wait_for(full, loop.get_executor(), 1ms, Note{&errors});
  async_wait_for(no_memory, loop.get_executor(), 1ms, Note{&errors});
  HashedWheelTimer given_none({.thread_factory = [](const std::function<void()>&) { return std::thread(); }});
  async_wait_for(no_thread, loop.get_executor(), 1ms, Note{&errors});
  async_wait_for(given_none, loop.get_executor(), 1ms, Note{&errors});
  EXPECT_TRUE(errors.empty());
  loop.run();
  EXPECT_EQ(errors, (std::vector<Error>{host::error::no_buffer_space, host::error::no_memory, host::error::try_again,
                                        host::error::try_again}));
}

TEST(WaitRefused, AWheelTimersWaitCompletesWithTheErrorOfATimerThatCannotStart) {
  std::vector<Error> errors;
  host::io_context loop;
  HashedWheelTimer none({.thread_factory = [](const std::function<void()>&) -> std::thread {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  }});
  net::WheelTimer waits(loop, none);
  waits.expires_after(1ms);
  waits.async_wait(Note{&errors});
  EXPECT_TRUE(errors.empty());
  loop.run();
  EXPECT_EQ(errors, std::vector<Error>{host::error::try_again});
}

TEST(WaitRefused, AWheelTimersWaitCompletesToo) {
  std::vector<Error> errors;
  host::io_context loop;
  HashedWheelTimer full(hwt::Options{.max_pending_timeouts = 1});
  const Timeout first = full.new_timeout([] {}, kFar);
  net::WheelTimer waits(loop, full);
  waits.expires_after(kFar);
  waits.async_wait(Note{&errors});
  loop.run();
  EXPECT_EQ(errors, std::vector<Error>{host::error::no_buffer_space});
  EXPECT_EQ(waits.cancel(), 0u);
}

TEST(WaitDropped, IsAbortedWhenTheTimersExecutorDropsIt) {
  std::vector<Error> errors;
  host::io_context loop;
  HashedWheelTimer timer({.tick_duration = 1ms, .executor = [](const std::function<void()>&) {}});
  async_wait_for(timer, loop.get_executor(), 1ms, Note{&errors});
  loop.run();
  EXPECT_EQ(errors, std::vector<Error>{kAborted});
}

TEST(WaitRaces, EachEndsOnceHoweverTheTimerEnds) {
  for (int round = 0; round < 400; ++round) {
    std::atomic<int> ended{0};
    host::io_context loop;
    auto work = host::make_work_guard(loop);
    std::thread thread([&] { loop.run(); });
    {
      HashedWheelTimer timer(1ms);
      for (int i = 0; i < 20; ++i) {
        async_wait_for(timer, loop.get_executor(), std::chrono::microseconds(100 * i), [&](const Error&) { ++ended; });
      }
      std::this_thread::sleep_for(std::chrono::microseconds(round * 10 % 2500));
      if (round % 2 == 0) timer.stop();
    }
    work.reset();
    thread.join();
    ASSERT_EQ(ended, 20);
  }
}

TEST(WaitRaces, EachGoesOnceHoweverTheContextEnds) {
  HashedWheelTimer timer(1ms);
  const auto kept = std::make_shared<int>();
  for (int round = 0; round < 1'000; ++round) {
    auto loop = std::make_unique<host::io_context>();
    for (int i = 0; i < 10; ++i) {
      async_wait_for(timer, loop->get_executor(), std::chrono::microseconds(100 * i), [kept](const Error&) {});
    }
    std::this_thread::sleep_for(std::chrono::microseconds(round * 7 % 1500));
    loop.reset();
    ASSERT_EQ(kept.use_count(), 1);
    // The worker may have claimed the last one, and be about to count it.
    ASSERT_TRUE(eventually([&] { return timer.pending_timeouts() == 0; }));
  }
}

TEST(WaitRaces, EachGoesOnceHoweverTheTimersStopAndTheContextsEndRace) {
  const auto kept = std::make_shared<int>();
  for (int round = 0; round < 1'000; ++round) {
    HashedWheelTimer timer(1ms);
    auto loop = std::make_unique<host::io_context>();
    host::cancellation_signal signal;
    for (int i = 0; i < 10; ++i) async_wait_for(timer, loop->get_executor(), kFar, [kept](const Error&) {});
    auto waits = std::make_shared<net::WheelTimer>(*loop, timer);
    waits->expires_after(kFar);
    // The context destroys both handlers, and the last handler destroys the WheelTimer.
    waits->async_wait([kept, waits](const Error&) {});
    waits->async_wait(host::bind_cancellation_slot(signal.slot(), [kept, waits](const Error&) {}));
    waits.reset();
    run_together(2, [&](int thread) {
      if (thread == 0) {
        timer.stop();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(round % 50));
        loop.reset();
      }
    });
    ASSERT_EQ(kept.use_count(), 1);
    ASSERT_FALSE(signal.slot().has_handler());
    ASSERT_EQ(timer.pending_timeouts(), 0);
  }
}

// --- cancel_after --------------------------------------------------------------------------------------------------

struct CancelAfter : testing::Test {
  CancelAfter() { host::local::connect_pair(here, there); }

  host::io_context loop;
  net::LoopTimer timer{loop.get_executor()};
  host::local::stream_protocol::socket here{loop};
  host::local::stream_protocol::socket there{loop};
  std::array<char, 4> buffer{};
};

TEST_F(CancelAfter, CancelsTheOperationAtItsLimit) {
  std::optional<Error> ended;
  const auto start = steady_clock::now();
  here.async_read_some(host::buffer(buffer), net::cancel_after(timer, 20ms, [&](const Error& error, std::size_t size) {
                         ended = error;
                         EXPECT_EQ(size, 0u);
                       }));
  loop.run();
  EXPECT_EQ(ended, Error(kAborted));
  EXPECT_GE(steady_clock::now() - start, 20ms);
}

TEST_F(CancelAfter, CancelsTheOperationAtADeadline) {
  const hwt::Deadline deadline = hwt::Deadline::in(20ms);
  std::optional<Error> ended;
  here.async_read_some(host::buffer(buffer),
                       net::cancel_after(timer, deadline, [&](const Error& error, std::size_t) { ended = error; }));
  loop.run();
  EXPECT_EQ(ended, Error(kAborted));
  EXPECT_TRUE(deadline.expired());
}

TEST_F(CancelAfter, ADeadlineThatNeverComesLimitsNothing) {
  std::optional<Error> ended;
  here.async_read_some(
      host::buffer(buffer),
      net::cancel_after(timer, hwt::Deadline::never(), [&](const Error& error, std::size_t) { ended = error; }));
  there.send(host::buffer("answer", 4));
  loop.run();
  ASSERT_TRUE(ended);
  EXPECT_FALSE(*ended);
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

TEST_F(CancelAfter, ItsLimitEndsNoOperationBeforeADeadlineByTheTimersClockThatWasTakenBefore) {
  HashedWheelTimer shared(1ms);
  for (hwt::Timer* const limit : {static_cast<hwt::Timer*>(&timer), static_cast<hwt::Timer*>(&shared)}) {
    for (int i = 0; i < 20; ++i) {
      const auto delay = std::chrono::microseconds(100 * i);
      const auto deadline = limit->now() + delay;
      std::optional<Error> ended;
      here.async_read_some(host::buffer(buffer), net::cancel_after(*limit, delay, [&](const Error& error, std::size_t) {
                             ended = error;
                             EXPECT_GE(limit->now(), deadline);
                           }));
      loop.run();
      loop.restart();
      EXPECT_EQ(ended, Error(kAborted));
    }
  }
}

TEST_F(CancelAfter, EndsWithTheOperation) {
  std::optional<Error> ended;
  host::write(there, host::buffer("four", 4));
  host::async_read(here, host::buffer(buffer),
                   net::cancel_after(timer, kFar, [&](const Error& error, std::size_t size) {
                     ended = error;
                     EXPECT_EQ(size, 4u);
                   }));
  loop.run();  // returns: no limit is left to wait for
  EXPECT_EQ(ended, Error());
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

TEST_F(CancelAfter, LeavesTheSlotOfTheHandlerAsItIs) {
  std::optional<Error> ended;
  host::cancellation_signal signal;
  here.async_read_some(
      host::buffer(buffer),
      net::cancel_after(timer, kFar, host::bind_cancellation_slot(signal.slot(), [&](const Error& error, std::size_t) {
                          ended = error;
                        })));
  loop.poll();
  signal.emit(host::cancellation_type::terminal);
  loop.run();
  EXPECT_EQ(ended, Error(kAborted));
  EXPECT_EQ(timer.pending_timeouts(), 0);
  signal.emit(host::cancellation_type::terminal);  // does nothing: the operation has ended
}

TEST_F(CancelAfter, WithinABoundSlotHasItsLimitAndTheSlot) {
  std::vector<Error> ended;
  host::cancellation_signal signal;
  const auto read = [&](hwt::Delay limit) {
    here.async_read_some(host::buffer(buffer),
                         host::bind_cancellation_slot(
                             signal.slot(), net::cancel_after(timer, limit, [&](const Error& error, std::size_t) {
                               ended.push_back(error);
                             })));
    loop.restart();
    loop.poll();
  };
  read(kFar);
  EXPECT_TRUE(ended.empty());
  signal.emit(host::cancellation_type::terminal);
  loop.run();
  EXPECT_EQ(ended, std::vector<Error>{kAborted});
  EXPECT_EQ(timer.pending_timeouts(), 0);
  read(2ms);
  loop.run();
  EXPECT_EQ(ended, std::vector<Error>(2, kAborted));
}

TEST_F(CancelAfter, WithinABoundSlotTakesAHandlerThatCanOnlyBeMoved) {
  host::cancellation_signal signal;
  std::vector<Error> ended;
  here.async_read_some(
      host::buffer(buffer),
      host::bind_cancellation_slot(
          signal.slot(),
          net::cancel_after(timer, kFar, [&, owned = std::make_unique<int>(7)](const Error& error, std::size_t) {
            EXPECT_EQ(*owned, 7);
            ended.push_back(error);
          })));
  loop.poll();
  signal.emit(host::cancellation_type::terminal);
  loop.run();
  EXPECT_EQ(ended, std::vector<Error>{kAborted});
}

TEST_F(CancelAfter, KeepsTheExecutorAndTheAllocatorOfTheHandler) {
  struct Handler {
    using allocator_type = Counting<std::byte>;
    allocator_type get_allocator() const { return Counting<std::byte>(left, made); }
    void operator()(const Error& error, std::size_t) const {
      EXPECT_EQ(error, kAborted);
      EXPECT_TRUE(strand->running_in_this_thread());
      ++*called;
    }
    std::atomic<int>* left;
    std::atomic<int>* made;
    const host::strand<host::io_context::executor_type>* strand;
    int* called;
  };
  std::atomic<int> left{0};
  std::atomic<int> made{0};
  int called = 0;
  const auto strand = host::make_strand(loop);
  const Handler handler{&left, &made, &strand, &called};
  here.async_read_some(host::buffer(buffer), net::cancel_after(timer, 1ms, host::bind_executor(strand, handler)));
  loop.run();
  EXPECT_EQ(called, 1);
  EXPECT_GT(made, 0);
  EXPECT_EQ(left, 0);
}

host::awaitable<void> read_within(hwt::Timer& timer, host::local::stream_protocol::socket& socket, int& steps) {
  std::array<char, 4> buffer{};
  EXPECT_EQ(co_await socket.async_read_some(host::buffer(buffer), net::cancel_after(timer, kFar, host::use_awaitable)),
            4u);
  ++steps;
  try {
    co_await host::async_read(socket, host::buffer(buffer), net::cancel_after(timer, 5ms, host::use_awaitable));
  } catch (const std::exception&) {
    ++steps;
  }
}

TEST_F(CancelAfter, LimitsWhatACoroutineAwaits) {
  int steps = 0;
  host::write(there, host::buffer("four", 4));
  host::co_spawn(loop, read_within(timer, here, steps), host::detached);
  loop.run();
  EXPECT_EQ(steps, 2);
}

TEST_F(CancelAfter, FitsOperationsWithOverloadsAndOtherTokens) {
  using host::ip::tcp;
  tcp::acceptor acceptor(loop, tcp::endpoint(host::ip::address_v4::loopback(), 0));
  tcp::socket socket(loop);
  const std::vector<tcp::endpoint> endpoints{acceptor.local_endpoint()};
  std::future<tcp::endpoint> connected =
      host::async_connect(socket, endpoints, net::cancel_after(timer, kFar, host::use_future));
  std::future<tcp::socket> accepted = acceptor.async_accept(net::cancel_after(timer, kFar, host::use_future));
  loop.run();
  EXPECT_EQ(connected.get(), acceptor.local_endpoint());
  auto operation = here.async_read_some(host::buffer(buffer), net::cancel_after(timer, 1ms, kDeferred));
  std::optional<Error> ended;
  std::move(operation)([&](const Error& error, std::size_t) { ended = error; });
  loop.restart();
  loop.run();
  EXPECT_EQ(ended, Error(kAborted));
  EXPECT_NO_THROW(accepted.get());
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

TEST_F(CancelAfter, CancelsAtOnceWhereThereIsNoRoomAndNeverAfterTheTimersEnd) {
  HashedWheelTimer full(hwt::Options{.max_pending_timeouts = 1});
  const Timeout first = full.new_timeout([] {}, kFar);
  HashedWheelTimer stopped;
  stopped.stop();
  std::vector<Error> errors;
  const auto note = [&](const Error& error, std::size_t) { errors.push_back(error); };
  here.async_read_some(host::buffer(buffer), net::cancel_after(full, kFar, note));
  loop.run();
  EXPECT_EQ(errors, std::vector<Error>{kAborted});
  loop.restart();
  here.async_read_some(host::buffer(buffer), net::cancel_after(stopped, 0ms, note));
  loop.poll();
  host::write(there, host::buffer("four", 4));
  loop.run();
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_FALSE(errors[1]);
}

TEST_F(CancelAfter, EachEndsOnceHoweverLimitAndOperationRace) {
  constexpr int kRounds = 1'500;
  int ended = 0;
  std::mt19937 random(1);
  HashedWheelTimer shared(1ms);
  auto strand = host::make_strand(loop);
  std::function<void()> next = [&] {
    if (ended == kRounds) return;
    hwt::Timer& limit = ended % 2 == 0 ? static_cast<hwt::Timer&>(shared) : timer;
    here.async_read_some(host::buffer(buffer),
                         net::cancel_after(limit, std::chrono::microseconds(random() % 1500),
                                           host::bind_executor(strand, [&](const Error&, std::size_t) {
                                             ++ended;
                                             next();
                                           })));
    if (random() % 2 == 0) there.write_some(host::buffer("four", 4));
  };
  host::post(strand, next);
  std::thread other([this] { loop.run(); });
  loop.run();
  other.join();
  EXPECT_EQ(ended, kRounds);
  EXPECT_TRUE(eventually([&] { return shared.pending_timeouts() == 0; })) << "its worker may have yet to count one";
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

// --- LoopTimer -----------------------------------------------------------------------------------------------------

TEST(LoopTimer, RunsTasksOnTheThreadOfTheLoopInOrderAndNotEarly) {
  host::io_context loop;
  net::LoopTimer timer(loop.get_executor());
  std::vector<int> ran;
  const auto start = timer.now();
  for (const int i : {3, 1, 2}) {
    timer.new_timeout_at(
        [&, i, thread = std::this_thread::get_id()](Timeout& self) {
          EXPECT_EQ(std::this_thread::get_id(), thread);
          EXPECT_GE(timer.now(), self.deadline());
          EXPECT_EQ(self.timer(), &timer);
          ran.push_back(i);
        },
        start + i * 5ms);
  }
  EXPECT_EQ(timer.pending_timeouts(), 3);
  loop.run();
  EXPECT_EQ(ran, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

/// The second timeout is due at the time for which the alarm has just rung. So the alarm is set for that time once
/// more.
TEST(LoopTimer, SetsItsAlarmAgainForATimeoutThatATaskSchedulesInTheTickOfTheAlarm) {
  host::io_context loop;
  net::LoopTimer timer(loop.get_executor(), 10ms);
  bool ran = false;
  const auto deadline = timer.now() + 20ms;
  timer.add_at([&] { timer.add_at([&] { ran = true; }, deadline); }, deadline);
  loop.run_for(60s);
  EXPECT_TRUE(ran);
}

TEST(LoopTimer, HasALimitAndStatistics) {
  host::io_context loop;
  net::LoopTimer timer(loop.get_executor(), {.tick_duration = 1ms, .max_pending_timeouts = 1});
  timer.new_timeout([] {}, 1ms);
  EXPECT_FALSE(timer.try_new_timeout([] {}, 1ms));
  loop.run();
  EXPECT_EQ(timer.stats().expired, 1);
  EXPECT_EQ(timer.stats().rejected, 1);
  EXPECT_EQ(timer.lateness().count(), 1u);
  EXPECT_THROW(net::LoopTimer(loop.get_executor(), {.tick_duration = 0ms}), std::invalid_argument);
}

TEST(LoopTimer, PendingTimeoutsAreWorkUntilTheLastIsCancelled) {
  host::io_context loop;
  net::LoopTimer timer(loop.get_executor());
  Timeout first = timer.new_timeout([] {}, kFar);
  Timeout second = timer.new_timeout([] {}, kFar);
  std::atomic<bool> returned{false};
  std::thread thread([&] {
    loop.run();
    returned = true;
  });
  EXPECT_TRUE(first.cancel());
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(returned);
  EXPECT_TRUE(second.cancel());
  thread.join();
}

TEST(LoopTimer, ATimeoutThatIsNeverDueIsNoWork) {
  host::io_context loop;
  net::LoopTimer timer(loop.get_executor());
  int runs = 0;
  timer.new_timeout([&] { ++runs; }, 2ms);
  timer.new_timeout([] { ADD_FAILURE(); }, std::chrono::hours::max());
  loop.run();
  EXPECT_EQ(runs, 1);
  timer.new_timeout([] { ADD_FAILURE(); }, std::chrono::hours::max());
  loop.restart();
  loop.run();
  EXPECT_EQ(timer.pending_timeouts(), 2);
}

/// A handler that calls `*when` if it is asked for its allocator. A wait asks after its timeout was cancelled and
/// before its completion is posted.
struct Asked {
  using allocator_type = std::allocator<std::byte>;
  allocator_type get_allocator() const noexcept {
    if (*when) (*when)();
    return {};
  }
  void operator()(const Error& error) const { errors->push_back(error); }

  std::function<void()>* when;
  std::vector<Error>* errors;
};

TEST(LoopTimer, ItsLoopDoesNotEndBeforeItHasHeardOfAWaitThatAnotherThreadCancels) {
  const std::array<std::function<void(std::unique_ptr<net::WheelTimer>&)>, 4> ways{
      [](auto& waits) { EXPECT_EQ(waits->cancel(), 1u); }, [](auto& waits) { EXPECT_EQ(waits->cancel_one(), 1u); },
      [](auto& waits) { EXPECT_EQ(waits->expires_after(kFar), 1u); }, [](auto& waits) { waits.reset(); }};
  for (const auto& cancel : ways) {
    host::io_context loop;
    host::io_context other;
    net::LoopTimer timer(loop.get_executor());
    std::vector<Error> errors;
    std::function<void()> between;
    int asked = 0;
    auto waits = std::make_unique<net::WheelTimer>(loop, timer);
    waits->expires_after(kFar);
    waits->async_wait(host::bind_executor(other.get_executor(), Asked{&between, &errors}));
    loop.poll();
    between = [&] {
      ++asked;
      loop.poll();
      EXPECT_FALSE(loop.stopped()) << "out of work";
    };
    cancel(waits);
    between = nullptr;
    EXPECT_GT(asked, 0);
    loop.poll();
    other.poll();
    EXPECT_EQ(errors, std::vector<Error>{kAborted});
    loop.run();  // returns: nothing is left to wait for
  }
}

TEST(LoopTimer, ATimeoutOfAnotherThreadWakesTheLoop) {
  host::io_context loop;
  net::LoopTimer timer(loop.get_executor());
  Timeout keeps = timer.new_timeout([] {}, kFar);
  std::thread thread([&] { loop.run(); });
  for (int i = 0; i < 200; ++i) {
    hwt::test::Latch ran;
    timer.new_timeout([&] { ran.count_down(); }, (i % 3) * 1ms);
    ASSERT_TRUE(ran.wait());
  }
  EXPECT_TRUE(keeps.cancel());
  thread.join();
}

TEST(LoopTimer, RunsOneTaskAtATimeOnSeveralThreads) {
  host::io_context loop;
  net::LoopTimer timer(loop.get_executor());
  std::atomic<int> inside{0};
  int ran = 0;
  for (int i = 0; i < 300; ++i) {
    timer.new_timeout(
        [&] {
          EXPECT_EQ(++inside, 1);
          ++ran;
          --inside;
        },
        std::chrono::microseconds(i * 50));
  }
  run_together(3, [&](int) { loop.run(); });
  EXPECT_EQ(ran, 300);
}

TEST(LoopTimer, StopEndsItsWork) {
  host::io_context loop;
  net::LoopTimer timer(loop.get_executor());
  timer.new_timeout([] { ADD_FAILURE(); }, kFar);
  loop.poll();
  EXPECT_EQ(timer.stop().size(), 1u);
  EXPECT_FALSE(timer.try_new_timeout([] {}, 1ms));
  loop.run();
}

TEST(LoopTimer, MayBeDestroyedInsideOneOfItsTasksOrBeforeTheLoopRuns) {
  for (const bool inside : {true, false}) {
    host::io_context loop;
    auto timer = std::make_unique<net::LoopTimer>(loop.get_executor());
    Timeout other = timer->new_timeout([] { ADD_FAILURE(); }, kFar);
    if (inside) {
      timer->new_timeout([&] { timer.reset(); }, 1ms);
    } else {
      timer.reset();
    }
    loop.run();
    EXPECT_TRUE(other.is_cancelled());
  }
}

TEST(LoopTimer, ItsLoopEndsAlthoughAnAlarmThatWasReplacedRings) {
  for (const bool by_cancel : {true, false}) {
    host::io_context loop;
    std::optional<net::LoopTimer> timer(std::in_place, loop.get_executor());
    timer->new_timeout([] {}, 5ms);
    Timeout far = timer->new_timeout([] { ADD_FAILURE(); }, kFar);
    loop.poll();  // sets the alarm for the first
    host::post(loop, [&] {
      timer->new_timeout([] {}, 0ms);
      host::post(loop, [&] {
        if (by_cancel) {
          EXPECT_TRUE(far.cancel());
        } else {
          timer.reset();
        }
      });
      std::this_thread::sleep_for(20ms);  // the alarm rings
    });
    loop.run_for(std::chrono::seconds(60));
    EXPECT_TRUE(loop.stopped()) << "by cancel: " << by_cancel;
  }
}

TEST(LoopTimer, ALoopThatIsPolledInsideStopGoesOnAfterwards) {
  class PollsWhenCancelled final : public hwt::TimerTask {
   public:
    explicit PollsWhenCancelled(host::io_context& loop) : loop_(loop) {}
    void run(Timeout&) override { ADD_FAILURE(); }
    void cancelled(Timeout&) override {
      EXPECT_THROW(loop_.poll(), hwt::IllegalState);
      ++polls;
    }

    int polls = 0;

   private:
    host::io_context& loop_;
  };
  host::io_context loop;
  const auto task = std::make_shared<PollsWhenCancelled>(loop);
  net::LoopTimer timer(loop.get_executor());
  const Timeout pending = timer.new_timeout(task, kFar);
  loop.poll();
  timer.new_timeout([] { ADD_FAILURE(); }, 1ms);
  timer.stop();
  EXPECT_EQ(task->polls, 1);
  loop.restart();
  loop.run_for(std::chrono::seconds(60));
  EXPECT_TRUE(loop.stopped());
}

TEST(LoopTimer, RefusesATickThatIsNotPositive) {
  host::io_context loop;
  EXPECT_THROW(net::LoopTimer(loop.get_executor(), 0ns), std::invalid_argument);
}

TEST(LoopTimer, NoTaskStartsOnceAnotherThreadDestroysIt) {
  host::io_context loop;
  auto timer = std::make_unique<net::LoopTimer>(loop.get_executor());
  std::atomic<bool> runs{false};
  const auto deadline = steady_clock::now();
  timer->new_timeout_at(
      [&](Timeout& self) {
        runs = true;
        EXPECT_TRUE(eventually([&] { return self.timer() == nullptr; }));
      },
      deadline);
  const Timeout next = timer->new_timeout_at([] { ADD_FAILURE(); }, deadline);
  std::jthread thread([&] { loop.run(); });
  EXPECT_TRUE(eventually([&] { return runs.load(); }));
  timer.reset();
  EXPECT_TRUE(next.is_cancelled());
}

TEST(LoopTimerRaces, ItMayGoWhileOtherThreadsRunItAndUseItsHandles) {
  for (int round = 0; round < 500; ++round) {
    host::io_context loop;
    auto timer = std::make_unique<net::LoopTimer>(loop.get_executor());
    std::atomic<int> ran{0};
    std::vector<Timeout> timeouts;
    for (int i = 0; i < 10; ++i) {
      timeouts.push_back(timer->new_timeout([&] { ++ran; }, std::chrono::microseconds(i * 200)));
    }
    int cancelled = 0;
    run_together(3, [&](int thread) {
      if (thread == 0) {
        loop.run();
      } else if (thread == 1) {
        for (Timeout& timeout : timeouts) {
          timeout.reschedule(0ns);  // wakes the loop
          cancelled += timeout.cancel() ? 1 : 0;
        }
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(round * 7 % 2000));
        timer.reset();
      }
    });
    int expired = 0;
    for (const Timeout& timeout : timeouts) {
      expired += timeout.is_expired() ? 1 : 0;
      ASSERT_NE(timeout.is_expired(), timeout.is_cancelled());
    }
    ASSERT_EQ(ran, expired);
    ASSERT_LE(cancelled, 10 - expired) << "the destructor has cancelled the others";
  }
}

}  // namespace
