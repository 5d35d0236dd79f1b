// The promises of a WheelTimer that basic_waitable_timer makes too. They run on steady_timer as well.

#include "tests/asio/kit.h"

namespace asio_test {
namespace {

TYPED_TEST_SUITE(Waiting, Kits);

TYPED_TEST(Waiting, EndsAtTheDeadlineAndKeepsRunUntilThen) {
  auto waits = this->make(20ms);
  const auto deadline = waits.expiry();
  waits.async_wait(Note{&this->errors});
  EXPECT_GE(this->loop.run(), 1u);
  EXPECT_GE(steady_clock::now(), deadline);
  EXPECT_EQ(this->errors, std::vector<Error>{Error()});
}

TYPED_TEST(Waiting, IsAbortedByCancelWhichReturnsHowManyAndByTheEndOfTheTimerObject) {
  auto waits = this->make(kFar);
  EXPECT_EQ(waits.cancel(), 0u);
  for (int i = 0; i < 3; ++i) waits.async_wait(Note{&this->errors});
  EXPECT_EQ(waits.cancel(), 3u);
  EXPECT_EQ(waits.cancel(), 0u);
  EXPECT_TRUE(this->errors.empty());
  this->loop.run();  // returns: nothing is left to wait for
  EXPECT_EQ(this->errors, std::vector<Error>(3, kAborted));
  this->make(kFar).async_wait(Note{&this->errors});
  EXPECT_EQ(this->errors.size(), 3u);
  this->run_again();
  EXPECT_EQ(this->errors, std::vector<Error>(4, kAborted));
}

TYPED_TEST(Waiting, CancelOneEndsTheOldest) {
  std::vector<int> ended;
  auto waits = this->make(kFar);
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

TYPED_TEST(Waiting, ToChangeTheExpiryCancelsAndLeavesNothingToWaitFor) {
  auto waits = this->make();
  EXPECT_EQ(waits.expires_after(kFar), 0u);
  waits.async_wait(Note{&this->errors});
  EXPECT_EQ(waits.expires_after(kFar), 1u);
  EXPECT_EQ(waits.expires_after(1ms), 0u);
  this->loop.run();
  EXPECT_EQ(this->errors, std::vector<Error>{kAborted});
  EXPECT_EQ(this->pending(), 0);
  waits.async_wait(Note{&this->errors});
  this->run_again();
  EXPECT_EQ(this->errors, (std::vector<Error>{kAborted, Error()}));
}

TYPED_TEST(Waiting, RunsOnTheExecutorOfTheHandlerWhichHasWorkUntilThen) {
  host::io_context other;
  std::thread::id ran_on;
  auto waits = this->make(5ms);
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

TYPED_TEST(Waiting, UsesTheAllocatorOfTheHandlerAndFreesBeforeTheCall) {
  struct Handler : Allocating {
    void operator()(const Error& error) const {
      EXPECT_EQ(memory->left, 0);
      errors->push_back(error);
    }
    std::vector<Error>* errors;
  };
  Memory memory;
  const Handler handler{{&memory}, &this->errors};
  auto waits = this->make(1ms);
  waits.async_wait(handler);
  EXPECT_GT(memory.left, 0);
  this->loop.run();
  waits.expires_after(kFar);
  waits.async_wait(handler);
  waits.cancel();
  this->run_again();
  EXPECT_EQ(memory.left, 0);
  EXPECT_GT(memory.made.exchange(0), 0);
  waits.expires_after(1ms);
  waits.async_wait(host::bind_executor(host::make_strand(this->loop), handler));
  this->run_again();
  EXPECT_EQ(memory.left, 0);
  EXPECT_GT(memory.made, 0) << "on another executor too";
  EXPECT_EQ(this->errors, (std::vector<Error>{Error(), kAborted, Error()}));
}

TYPED_TEST(Waiting, IsAbortedByItsCancellationSlot) {
  host::cancellation_signal signal;
  auto waits = this->make(kFar);
  for (const auto type :
       {host::cancellation_type::terminal, host::cancellation_type::partial, host::cancellation_type::total}) {
    waits.async_wait(host::bind_cancellation_slot(signal.slot(), Note{&this->errors}));
    signal.emit(host::cancellation_type::none);
    this->loop.poll();
    EXPECT_TRUE(this->errors.empty()) << "cancelled by none";
    signal.emit(type);
    EXPECT_TRUE(this->errors.empty());
    this->run_again();
    EXPECT_EQ(this->errors, std::vector<Error>{kAborted});
    this->errors.clear();
    signal.emit(type);  // does nothing: the wait has ended
  }
}

TYPED_TEST(Waiting, TakesAHandlerThatCanOnlyBeMovedAFutureAndADeferredToken) {
  bool called = false;
  auto waits = this->make(1ms);
  waits.async_wait([owned = std::make_unique<int>(7), &called](const Error&) { called = *owned == 7; });
  std::future<void> ended = waits.async_wait(host::use_future);
  this->loop.run();
  EXPECT_TRUE(called);
  EXPECT_NO_THROW(ended.get());
  waits.expires_after(kFar);
  ended = waits.async_wait(host::use_future);
  waits.cancel();
  this->run_again();
  EXPECT_THROW(ended.get(), std::exception);
  waits.expires_after(1ms);
  auto operation = waits.async_wait(kDeferred);
  EXPECT_EQ(this->run_again(), 0u) << "it begins when it is asked";
  std::move(operation)(Note{&this->errors});
  this->run_again();
  EXPECT_EQ(this->errors, std::vector<Error>{Error()});
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

TYPED_TEST(Waiting, OneThatIsNeverDueIsWorkToo) {
  auto waits = this->make(steady_clock::time_point::max());
  waits.async_wait(Note{&this->errors});
  std::atomic<bool> returned{false};
  std::thread thread([&] {
    this->loop.run();
    returned = true;
  });
  std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(returned);
  waits.cancel();
  thread.join();
  EXPECT_EQ(this->errors, std::vector<Error>{kAborted});
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

}  // namespace
}  // namespace asio_test
