// A cancellation slot after its wait or its limit has ended, in every way.

#include "tests/asio/kit.h"

namespace asio_test {
namespace {

/// A wait with a slot, whose context goes before the signal does.
struct SlotOfAWait : WaitOnManualTimer {
  auto executor() const { return context->get_executor(); }
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
  /// Lets the context go, and makes another one.
  void expect_that_it_is_empty_without_the_context() {
    context.reset();
    expect_that_it_is_empty();
    context = std::make_unique<host::io_context>();
  }
  /// Begins each operation, ends it in each way, and lets the context go.
  void expect_that_it_is_empty_after(const std::vector<std::function<void()>>& begins,
                                     const std::vector<std::function<void()>>& ends) {
    for (const auto& begin : begins) {
      for (const auto& end : ends) {
        begin();
        EXPECT_TRUE(is_occupied());
        end();
        expect_that_it_is_empty_without_the_context();
      }
    }
  }

  const std::shared_ptr<int> kept = std::make_shared<int>();
  std::optional<host::cancellation_signal> signal{std::in_place};
  std::unique_ptr<host::io_context> context = std::make_unique<host::io_context>();
};

TEST_F(SlotOfAWait, IsEmptyAfterTheContextDestroyedAWait) {
  const std::vector<std::function<void()>> begins{
      [this] { async_wait(timer, executor(), 1ms, never_called()); },
      [this] { async_wait(timer, executor(), timer.now() + 1ms, never_called()); },
      [this] { async_wait(timer, host::any_io_executor(executor()), 1ms, never_called()); },
      [this] { async_wait(timer, host::make_strand(executor()), 1ms, never_called()); },
      [this] { async_wait(timer, executor(), 1ms, host::bind_executor(host::make_strand(*context), never_called())); },
      [this] { async_wait(timer, executor(), 1ms, host::bind_executor(loop.get_executor(), never_called())); }};
  // When the context goes, the completion was not posted yet, or it is in a queue of the context.
  const std::vector<std::function<void()>> ends{[] {}, [this] { timer.advance(1ms); },
                                                [this] { signal->emit(host::cancellation_type::total); }};
  expect_that_it_is_empty_after(begins, ends);
}

TEST_F(SlotOfAWait, IsEmptyAfterTheContextDestroyedAWaitOfAWheelTimer) {
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
        auto waits = std::make_shared<net::WheelTimer>(*context, timer);
        if (put_off) waits->async_wait([kept = kept](const Error&) { ADD_FAILURE(); });
        EXPECT_EQ(waits->expires_after(1ms), put_off ? 1u : 0u);
        waits->async_wait(never_called());
        EXPECT_TRUE(is_occupied());
        end(*waits);
        if (!object_goes_first) host::post(*context, [waits] {});  // it goes with the queue of the context
        waits.reset();
        expect_that_it_is_empty_without_the_context();
      }
    }
  }
}

TEST_F(SlotOfAWait, IsEmptyOnceTheContextHasGoneWhicheverWayTheTimerEndedBefore) {
  {
    ManualTimer ends;
    async_wait(ends, executor(), kFar, never_called());
  }
  expect_that_it_is_empty_without_the_context();
  async_wait(timer, executor(), kFar, never_called());
  EXPECT_EQ(timer.stop().size(), 1u);
  expect_that_it_is_empty_without_the_context();
  async_wait(timer, executor(), kFar, never_called());  // refused
  context.reset();
  expect_that_it_is_empty();
}

TEST_F(SlotOfAWait, MayBeToldAfterTheContextOfTheWaitHasGoneAndBeforeItsHandlerIsCalledElsewhere) {
  async_wait(timer, host::make_strand(executor()), 1ms,
             host::bind_cancellation_slot(signal->slot(), host::bind_executor(loop.get_executor(), Note{&errors})));
  timer.advance(1ms);
  EXPECT_EQ(context->run(), 1u);  // from here it is in the other queue
  context.reset();
  signal->emit(host::cancellation_type::terminal);
  EXPECT_EQ(loop.run(), 1u);
  EXPECT_EQ(errors, std::vector<Error>{Error()});
  expect_that_it_is_empty();
}

TEST_F(SlotOfAWait, IsEmptyAfterAWaitThatThrew) {
  EXPECT_THROW(async_wait(timer, executor(), kNanDelay, never_called()), std::invalid_argument);
  expect_that_it_is_empty();
  Memory memory;
  int copies = -1;
  auto handler = host::bind_cancellation_slot(signal->slot(), Throwing(&copies, &memory));
  throw_at_each_copy(
      copies, [&] { async_wait(timer, executor(), 1ms, handler); }, [this] { expect_that_it_is_empty(); });
  expect_that_it_is_empty_without_the_context();
  EXPECT_EQ(memory.left, 0);
}

TEST_F(SlotOfAWait, IsNotTouchedOnceTheSignalHasGone) {
  struct Other {
    void operator()(host::cancellation_type) const {}
  };
  for (const bool called : {true, false}) {
    async_wait(timer, executor(), 1ms,
               host::bind_cancellation_slot(signal->slot(), [called](const Error&) { EXPECT_TRUE(called); }));
    signal.emplace();  // another one in its place
    signal->slot().emplace<Other>();
    timer.advance(1ms);
    if (called) {
      EXPECT_EQ(context->run(), 1u);
    }
    context = std::make_unique<host::io_context>();
    EXPECT_TRUE(is_occupied());
  }
}

TEST_F(SlotOfAWait, BelongsToTheWaitThatTookItLast) {
  async_wait(timer, executor(), 1ms, host::bind_cancellation_slot(signal->slot(), Note{&errors}));
  async_wait(timer, executor(), kFar, host::bind_cancellation_slot(signal->slot(), Note{&errors}));
  timer.advance(1ms);
  context->poll();
  signal->emit(host::cancellation_type::terminal);
  context->poll();
  EXPECT_EQ(errors, (std::vector<Error>{Error(), kAborted}));
  expect_that_it_is_empty();
}

/// A wait or another operation with a slot, within cancel_after.
struct SlotOfALimit : SlotOfAWait {
  auto limited(std::shared_ptr<void> with = nullptr) {
    return net::cancel_after(
        timer, 2ms, host::bind_cancellation_slot(signal->slot(), [kept = kept, with](const Error&) { ADD_FAILURE(); }));
  }
  /// Each begins an operation whose context is destroyed before it could call the handler.
  std::vector<std::function<void()>> begins() {
    return {[this] { async_wait(timer, executor(), 1ms, limited()); },
            [this] {
              const auto waits = std::make_shared<net::WheelTimer>(*context, timer);
              waits->async_wait(limited(waits));
            },
            [this] {
              const auto steady = std::make_shared<host::steady_timer>(*context, kFar);
              steady->async_wait(limited(steady));
            },
            [this] { async_wait(timer, executor(), 1ms, net::cancel_after(timer, 3ms, limited())); }};
  }
};

TEST_F(SlotOfALimit, IsEmptyAfterTheContextDestroyedTheOperation) {
  // When the context goes, the end of the limit was not posted yet, or it is in a queue of the context.
  const std::vector<std::function<void()>> ends{[] {}, [this] { timer.advance(3ms); },
                                                [this] { signal->emit(host::cancellation_type::total); }};
  expect_that_it_is_empty_after(begins(), ends);
}

TEST_F(SlotOfALimit, IsEmptyOnceTheContextHasGoneAfterTheTimer) {
  for (const auto& begin : begins()) begin();
  EXPECT_FALSE(timer.stop().empty());
  context.reset();
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
  EXPECT_EQ(context->run(), 0u);
}

TEST_F(SlotOfALimit, IsEmptyAndTheLimitGoneWhereverTheHandlerThrows) {
  Memory memory;
  int copies = -1;
  auto handler = host::bind_cancellation_slot(signal->slot(), Throwing(&copies, &memory));
  auto token = net::cancel_after(timer, kFar, handler);
  const int thrown = throw_at_each_copy(
      copies, [&] { async_wait(timer, executor(), 1ms, token); },
      [&] {
        expect_that_it_is_empty();
        EXPECT_EQ(memory.left, 0);
      });
  EXPECT_GT(thrown, 0);
  expect_that_it_is_empty_without_the_context();
  EXPECT_EQ(memory.left, 0);
}

}  // namespace
}  // namespace asio_test
