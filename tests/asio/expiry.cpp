// A WheelTimer whose expiry changes, and which is moved.

#include "tests/asio/kit.h"

namespace asio_test {
namespace {

TYPED_TEST_SUITE(Waiting, Kits);

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

TEST_F(PuttingOff, ATimeoutWithoutAWaitExpiresUnheardOrGoesWithTheHandlerOfTheLast) {
  for (const bool expires : {false, true}) {
    errors.clear();
    begin_and_put_off();
    if (expires) {
      EXPECT_EQ(timer.advance(10ms), 1u);
    }
    EXPECT_EQ(run_again(loop), 1u);
    EXPECT_EQ(timer.pending_timeouts(), 0);
    waits->async_wait(Note{&errors});  // its expiry may have passed
    timer.advance(5ms);
    EXPECT_EQ(run_again(loop), 1u);
    EXPECT_EQ(errors, (std::vector<Error>{kAborted, Error()}));
  }
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
  std::atomic<int> ended{0}, expired{0};
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

// --- Moves and constructors of a WheelTimer ------------------------------------------------------------------------

TYPED_TEST(Waiting, AMoveTakesTheWaitsAlongAndLeavesAUsableTimer) {
  auto waits = this->make(kFar);
  const auto expiry = waits.expiry();
  waits.async_wait(Note{&this->errors});
  waits.async_wait(Note{&this->errors});
  auto moved = std::move(waits);
  EXPECT_EQ(moved.expiry(), expiry);
  EXPECT_TRUE(moved.get_executor() == this->loop.get_executor());
  EXPECT_EQ(waits.cancel(), 0u);  // NOLINT(bugprone-use-after-move): it can be used
  this->loop.poll();
  EXPECT_TRUE(this->errors.empty());
  EXPECT_EQ(moved.cancel(), 2u);
  this->run_again();
  EXPECT_EQ(this->errors, std::vector<Error>(2, kAborted));
  waits.expires_after(1ms);
  waits.async_wait(Note{&this->errors});
  this->run_again();
  EXPECT_EQ(this->errors, (std::vector<Error>{kAborted, kAborted, Error()}));
}

TYPED_TEST(Waiting, AMoveDoesNotEndAWaitThatThenExpires) {
  auto waits = std::make_optional(this->make(5ms));
  waits->async_wait(Note{&this->errors});
  auto moved = std::move(*waits);
  waits.reset();
  this->loop.run();
  EXPECT_EQ(this->errors, std::vector<Error>{Error()});
  moved.expires_after(1ms);  // once more, with a timeout of the first wait or another one
  moved.async_wait(Note{&this->errors});
  this->run_again();
  EXPECT_EQ(this->errors, std::vector<Error>(2, Error()));
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

TYPED_TEST(Waiting, AMoveBetweenACancelAndTheNextWaitKeepsBoth) {
  auto waits = this->make(kFar);
  waits.async_wait(Note{&this->errors});
  EXPECT_EQ(waits.expires_after(2ms), 1u);  // may leave a timeout for the next wait
  auto moved = std::move(waits);
  moved.async_wait(Note{&this->errors});
  this->loop.run();
  EXPECT_EQ(this->errors, (std::vector<Error>{kAborted, Error()}));
}

TYPED_TEST(Waiting, IsMovedInsideItsHandler) {
  auto waits = this->make(1ms);
  auto other = this->make();
  waits.async_wait([&](const Error& first) {
    this->errors.push_back(first);
    other = std::move(waits);
    other.expires_after(1ms);
    other.async_wait(Note{&this->errors});
  });
  this->loop.run();
  EXPECT_EQ(this->errors, std::vector<Error>(2, Error()));
}

TYPED_TEST(Waiting, BeginsWithAnExpiryAndNeverEndsInsideTheCallThatBeginsTheWait) {
  const auto before = steady_clock::now();
  EXPECT_GE(this->make(20ms).expiry(), before + 20ms);
  EXPECT_EQ(this->make(before + 1h).expiry(), before + 1h);
  auto waits = this->make(before - 1s);
  waits.async_wait(Note{&this->errors});
  std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(this->errors.empty());
  this->loop.run();
  EXPECT_EQ(this->errors, std::vector<Error>{Error()});
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
  run_again(loop);
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
  async_wait(timer, loop.get_executor(), (Coarse::max)(), count);
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

/// Its move throws once `throws` is set.
struct HardToMove : Allocating {
  HardToMove(Memory& counts, const bool& fails) : Allocating{&counts}, throws(&fails) {}
  HardToMove(const HardToMove&) = default;
  HardToMove(HardToMove&& other) : Allocating{other.memory}, throws(other.throws) {
    if (*throws) throw std::runtime_error("move");
  }
  void operator()(const Error&) const { ADD_FAILURE() << "it could not be moved"; }

  const bool* throws;
};

TYPED_TEST(Waiting, AHandlerWhoseMoveThrowsLeaksNothing) {
  Memory memory;
  bool throws = false;
  auto waits = this->make(1ms);
  const HardToMove handler(memory, throws);
  waits.async_wait(handler);
  throws = true;
  EXPECT_GT(memory.left, 0);
  EXPECT_THROW(this->loop.run(), std::runtime_error);
  EXPECT_EQ(memory.left, 0) << "bytes of " << memory.made << " allocations";
}

TEST(HandlerThatCannotBeMoved, IsDestroyedWithTheContext) {
  Memory memory;
  bool throws = false;
  ManualTimer timer;
  auto loop = std::make_optional<host::io_context>();
  async_wait(timer, loop->get_executor(), kFar, HardToMove(memory, throws));
  EXPECT_GT(memory.left, 0);
  throws = true;
  loop.reset();
  EXPECT_EQ(memory.left, 0);
}

}  // namespace
}  // namespace asio_test
