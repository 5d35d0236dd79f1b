// async_wait(): its ends, executors and memory, refusals and races.

#include "tests/asio/kit.h"

namespace asio_test {
namespace {

TEST_F(WaitOnManualTimer, EndsWhenTheTimerSaysSo) {
  async_wait(timer, loop.get_executor(), 5ms, Note{&errors});
  async_wait(timer, loop.get_executor(), timer.now() + 7ms, Note{&errors});
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
    async_wait(ends, loop.get_executor(), kFar, Note{&errors});
  }
  async_wait(timer, loop.get_executor(), kFar, Note{&errors});
  std::vector<Timeout> left = timer.stop();
  ASSERT_EQ(left.size(), 1u);
  left[0].task().run(left[0]);  // does nothing
  async_wait(timer, loop.get_executor(), 1ms, Note{&errors});
  EXPECT_TRUE(errors.empty());
  EXPECT_EQ(loop.run(), 3u);
  EXPECT_EQ(errors, std::vector<Error>(3, kAborted));
}

TEST_F(WaitOnManualTimer, AWaitAndALimitByTheWallClockAreNotEarly) {
  ManualTimer now{1ms, steady_clock::now()};
  // Read first, so the deadlines are not before it. The wall clock may round down to its unit.
  const auto due = steady_clock::now() + 1h - std::chrono::system_clock::duration(1);
  const auto wall = std::chrono::system_clock::now() + 1h;
  async_wait(now, loop.get_executor(), wall, Note{&errors});
  async_wait(now, loop.get_executor(), 24h, net::cancel_after(now, wall, Note{&errors}));
  now.advance_to(due - 1ns);
  loop.poll();
  EXPECT_TRUE(errors.empty());
  now.advance_to(due + 1min);
  loop.run();
  EXPECT_EQ(errors, (std::vector<Error>{Error(), kAborted}));
}

TEST_F(WaitOnManualTimer, HasItsNameAsItsOrigin) {
  ManualTimer traced{hwt::Options{.trace_origins = true}};
  async_wait(traced, loop.get_executor(), kFar, Note{&errors});
  const std::vector<hwt::PendingOrigin> origins = traced.pending_by_origin();
  ASSERT_EQ(origins.size(), 1u);
  EXPECT_STREQ(origins[0].origin.text(), "hwt::async_wait");
}

TEST_F(WaitOnManualTimer, ALoopTimerTakesOptionsAndWithoutATickHasAMillisecond) {
  net::LoopTimer own(loop.get_executor(), hwt::Options{.max_pending_timeouts = 1});
  const auto begin = own.now();
  own.new_timeout([] {}, 0ns);
  EXPECT_FALSE(own.try_new_timeout([] {}, 0ns));
  loop.run_for(50ms);
  EXPECT_TRUE(own.pending_timeouts() == 0 || own.now() > begin + 90ms) << "the tick is 1 ms, and not 100";
  EXPECT_THROW(net::LoopTimer(loop.get_executor(), {.tick_duration = 0ms}), std::invalid_argument);
}

TEST_F(WaitOnManualTimer, AnExpirySaturatesAlsoBeforeTheZeroOfTheClock) {
  ManualTimer before_zero{1ms, steady_clock::time_point(-1h)};
  net::WheelTimer wait(loop, before_zero);
  constexpr std::chrono::nanoseconds kMost = (std::chrono::nanoseconds::max)();
  wait.expires_after(kMost - 1ns);
  EXPECT_EQ(wait.expiry(), steady_clock::time_point(kMost - 1ns - 1h));
  wait.expires_after(kMost);
  EXPECT_EQ(wait.expiry(), (steady_clock::time_point::max)());
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
    co_await async_wait(timer, executor, kNanDelay, host::use_awaitable);
  } catch (const std::invalid_argument& refusal) {
    messages.emplace_back(refusal.what());
  }
  try {
    co_await async_wait(timer, executor, 1ms, net::cancel_after(timer, kNanDelay, host::use_awaitable));
  } catch (const std::invalid_argument& refusal) {
    messages.emplace_back(refusal.what());
  }
}

TEST_F(WaitOnManualTimer, ANanIsThrownIntoTheCoroutineThatAwaits) {
  std::vector<std::string> messages;
  host::co_spawn(loop, await_nan(timer, messages), host::detached);
  loop.run();
  EXPECT_EQ(messages, (std::vector<std::string>{"async_wait: delay: NaN (expected: a number)",
                                                "cancel_after: delay: NaN (expected: a number)"}));
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

TEST_F(WaitOnManualTimer, OnEarlierMayBeginAndCancelWaits) {
  int calls = 0;
  net::WheelTimer other(loop, timer);
  timer.on_earlier([&] {
    if (++calls != 1) return;
    async_wait(timer, loop.get_executor(), 1h, Note{&errors});
    other.expires_after(1h);
    other.async_wait(Note{&errors});
    EXPECT_EQ(other.cancel(), 1u);
  });
  async_wait(timer, loop.get_executor(), 1s, Note{&errors});
  EXPECT_EQ(calls, 1);
  timer.on_earlier({});
  timer.advance(1h);
  loop.run();
  EXPECT_EQ(errors, (std::vector<Error>{kAborted, Error(), Error()}));
}

TEST_F(WaitOnManualTimer, LeavesNothingWhereverTheHandlerThrows) {
  host::io_context other;
  Memory memory;
  int copies = -1;
  const auto expect_nothing_left = [&](auto handler) {
    int allocations = 0;  // that were made before a copy threw
    const auto begin = [&] {
      memory.made = 0;
      async_wait(timer, loop.get_executor(), 1ms, handler);
    };
    throw_at_each_copy(copies, begin, [&] {
      allocations += memory.made;
      EXPECT_EQ(memory.left, 0);
      EXPECT_EQ(timer.pending_timeouts(), 0);
      EXPECT_EQ(run_again(loop) + run_again(other), 0u);
    });
    timer.advance(1ms);
    run_again(loop);
    run_again(other);
    EXPECT_EQ(memory.left, 0);
    EXPECT_GT(allocations, 0) << "no copy has thrown after an allocation";
  };
  const Throwing handler(&copies, &memory);
  expect_nothing_left(handler);
  expect_nothing_left(host::bind_executor(other.get_executor(), handler));
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
  EXPECT_THROW(async_wait(timer, loop.get_executor(), 1ms, WithSlotWithoutMemory{kept}), std::bad_alloc);
  ASSERT_EQ(kept.use_count(), 1) << "the handler is still there";
  EXPECT_EQ(timer.pending_timeouts(), 0);
  EXPECT_EQ(loop.run(), 0u);
}

TEST_F(WaitOnManualTimer, ASystemExecutorIsAnIoExecutorToo) {
  std::promise<Error> ended;
  async_wait(timer, host::system_executor(), 1ms, [&](const Error& error) { ended.set_value(error); });
  timer.advance(1ms);
  EXPECT_EQ(ended.get_future().get(), Error());
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
  async_wait(timer, host::any_io_executor(strand), 1ms, on(strand));
  async_wait(timer, host::any_io_executor(strand_of_any), 1ms, on(strand_of_any));
  async_wait(timer, loop.get_executor(), 1ms, host::bind_executor(host::any_io_executor(strand), on(strand)));
  net::WheelTimer waits(host::any_io_executor(strand), timer);
  waits.expires_after(1ms);
  waits.async_wait(on(strand));
  waits.async_wait(host::bind_executor(strand_of_any, on(strand_of_any)));
  async_wait(timer, strand_of_any, 1ms, net::cancel_after(timer, kFar, on(strand_of_any)));
  timer.advance(1ms);
  loop.run();
  EXPECT_EQ(called, 6);
}

/// A handler that owns its session, with the memory of the handler, and lets it go when it is called.
struct OwnsItsSession : Allocating {
  explicit OwnsItsSession(Memory& of_session)
      : Allocating{&of_session}, session(&of_session, [](const Memory* gone) {
          EXPECT_EQ(gone->left, 0) << "memory of a session that is gone";
        }) {}
  void operator()(const Error&) { session.reset(); }

  std::shared_ptr<Memory> session;
};

TEST_F(WaitOnManualTimer, UsesNoMemoryOfAHandlerThatIsGone) {
  Memory memory;
  for (const bool is_posted : {false, true}) {
    host::io_context goes;
    async_wait(timer, goes.get_executor(), 1ms, OwnsItsSession(memory));
    EXPECT_GT(memory.left, 0);
    if (is_posted) timer.advance(1ms);
  }
  {
    host::io_context goes;
    net::WheelTimer waits(goes, timer, 1ms);
    waits.async_wait(OwnsItsSession(memory));
    waits.cancel();
  }
  EXPECT_EQ(memory.left, 0);
}

TEST_F(WaitOnManualTimer, CancelAfterUsesNoMemoryOfItsHandlerWhenThatIsCalled) {
  Memory memory;
  for (const auto limit : {1ms, 2ms, 1000ms}) {
    async_wait(timer, loop.get_executor(), 2ms, net::cancel_after(timer, limit, OwnsItsSession(memory)));
    timer.advance(2ms);
    run_again(loop);
    EXPECT_EQ(memory.left, 0);
  }
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
struct Refusing final : hwt::detail::DrivenTimer {
  explicit Refusing(std::function<void()> by) : DrivenTimer("Refusing", {}), refuse(std::move(by)) {}
  ~Refusing() override { end(); }
  hwt::detail::Scheduled schedule(const hwt::detail::TaskSource&, hwt::When) override {
    refuse();
    return {};
  }
  std::function<void()> refuse;
};

TEST(WaitRefused, CompletesWithWhatItWasRefusedFor) {
  const std::system_error again(std::make_error_code(std::errc::resource_unavailable_try_again));
  HashedWheelTimer full(hwt::Options{.max_pending_timeouts = 1});
  const Timeout first = full.new_timeout([] {}, kFar);
  Refusing no_memory([] { throw std::bad_alloc(); });
  Refusing no_thread([&] { throw again; });
  HashedWheelTimer failed({.thread_factory = [&](const std::function<void()>&) -> std::thread { throw again; }});
  HashedWheelTimer given_none({.thread_factory = [](const std::function<void()>&) { return std::thread(); }});
  const std::vector<std::pair<hwt::Timer*, Error>> rows{{&full, host::error::no_buffer_space},
                                                        {&no_memory, host::error::no_memory},
                                                        {&no_thread, host::error::try_again},
                                                        {&failed, host::error::try_again},
                                                        {&given_none, host::error::try_again}};
  for (const auto& [timer, expected] : rows) {
    std::vector<Error> errors;
    host::io_context loop;
    async_wait(*timer, loop.get_executor(), kFar, Note{&errors});
    net::WheelTimer waits(loop, *timer, kFar);
    waits.async_wait(Note{&errors});
    EXPECT_TRUE(errors.empty());
    loop.run();
    EXPECT_EQ(errors, std::vector<Error>(2, expected));
    EXPECT_EQ(waits.cancel(), 0u);
  }
}

TEST(WaitDropped, IsAbortedWhenTheTimersExecutorDropsIt) {
  std::vector<Error> errors;
  host::io_context loop;
  HashedWheelTimer timer({.tick_duration = 1ms, .executor = [](const std::function<void()>&) {}});
  async_wait(timer, loop.get_executor(), 1ms, Note{&errors});
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
        async_wait(timer, loop.get_executor(), std::chrono::microseconds(100 * i), [&](const Error&) { ++ended; });
      }
      std::this_thread::sleep_for(std::chrono::microseconds(round * 10 % 2500));
      if (round % 2 == 0) timer.stop();
    }
    work.reset();
    thread.join();
    ASSERT_EQ(ended, 20);
  }
}

TEST(WaitRaces, EachGoesOnceHoweverItsExpiryTheTimersStopAndTheContextsEndRace) {
  const auto kept = std::make_shared<int>();
  for (int round = 0; round < 1'000; ++round) {
    HashedWheelTimer timer(1ms);
    auto loop = std::make_unique<host::io_context>();
    host::cancellation_signal signal;
    for (int i = 0; i < 10; ++i) {
      async_wait(timer, loop->get_executor(), i % 2 == 0 ? hwt::Delay(kFar) : hwt::Delay(100us * i),
                 [kept](const Error&) {});
    }
    auto waits = std::make_shared<net::WheelTimer>(*loop, timer);
    waits->expires_after(kFar);
    // The context destroys both handlers, and the last handler destroys the WheelTimer.
    waits->async_wait([kept, waits](const Error&) {});
    waits->async_wait(host::bind_cancellation_slot(signal.slot(), [kept, waits](const Error&) {}));
    waits.reset();
    if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(round * 7 % 1500));  // until some expire
    run_together(2, [&](int thread) {
      if (thread == 0) {
        if (round % 4 != 1) timer.stop();  // otherwise it lives on
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(round % 50));
        loop.reset();
      }
    });
    ASSERT_EQ(kept.use_count(), 1);
    ASSERT_FALSE(signal.slot().has_handler());
    ASSERT_TRUE(hwt::test::none_pending(timer));
  }
}

}  // namespace
}  // namespace asio_test
