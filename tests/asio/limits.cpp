// cancel_after().

#include "tests/asio/kit.h"

namespace asio_test {
namespace {

struct CancelAfter : testing::Test {
  CancelAfter() { host::local::connect_pair(here, there); }

  host::io_context loop;
  net::LoopTimer timer{loop.get_executor()};
  host::local::stream_protocol::socket here{loop};
  host::local::stream_protocol::socket there{loop};
  std::array<char, 4> buffer{};
  std::optional<Error> ended;
};

TEST_F(CancelAfter, ItsLimitEndsNoOperationBeforeADeadlineByTheTimersClockThatWasTakenBefore) {
  HashedWheelTimer shared(1ms);
  for (hwt::Timer* const limit : {static_cast<hwt::Timer*>(&timer), static_cast<hwt::Timer*>(&shared)}) {
    for (int i = 0; i < 20; ++i) {
      const auto delay = std::chrono::microseconds(100 * i);
      const auto deadline = limit->now() + delay;
      ended.reset();
      here.async_read_some(host::buffer(buffer), net::cancel_after(*limit, delay, [&](const Error& error, std::size_t) {
                             ended = error;
                             EXPECT_GE(limit->now(), deadline);
                           }));
      run_again(loop);
      EXPECT_EQ(ended, Error(kAborted));
    }
  }
}

TEST_F(CancelAfter, EndsWithTheOperation) {
  for (const hwt::Deadline limit : {hwt::Deadline::in(kFar), hwt::Deadline::never()}) {
    ended.reset();
    host::write(there, host::buffer("four", 4));
    host::async_read(here, host::buffer(buffer),
                     net::cancel_after(timer, limit, [&](const Error& error, std::size_t size) {
                       ended = error;
                       EXPECT_EQ(size, 4u);
                     }));
    run_again(loop);  // returns: no limit is left to wait for
    EXPECT_EQ(ended, Error());
    EXPECT_EQ(timer.pending_timeouts(), 0);
  }
}

TEST_F(CancelAfter, HasItsLimitAndASlotBoundInsideOrAroundAndTakesAHandlerThatCanOnlyBeMoved) {
  std::vector<Error> ended;
  host::cancellation_signal signal;
  const auto stoppable = [&](auto token) { return host::bind_cancellation_slot(signal.slot(), std::move(token)); };
  const auto read = [&](hwt::Delay limit, bool around) {
    auto handler = [&, owned = std::make_unique<int>(7)](const Error& error, std::size_t) {
      EXPECT_EQ(*owned, 7);
      ended.push_back(error);
    };
    const auto begin = [&](auto token) { here.async_read_some(host::buffer(buffer), std::move(token)); };
    if (around) {
      begin(stoppable(net::cancel_after(timer, limit, std::move(handler))));
    } else {
      begin(net::cancel_after(timer, limit, stoppable(std::move(handler))));
    }
    loop.restart();
    loop.poll();
  };
  for (const bool around : {false, true}) {
    ended.clear();
    read(kFar, around);
    EXPECT_TRUE(ended.empty());
    signal.emit(host::cancellation_type::terminal);
    loop.run();
    EXPECT_EQ(ended, std::vector<Error>{kAborted});
    EXPECT_EQ(timer.pending_timeouts(), 0);
    signal.emit(host::cancellation_type::terminal);  // does nothing: the operation has ended
    read(2ms, around);
    loop.run();
    EXPECT_EQ(ended, std::vector<Error>(2, kAborted));
  }
}

TEST_F(CancelAfter, KeepsTheExecutorAndTheAllocatorOfTheHandler) {
  struct Handler : Allocating {
    void operator()(const Error& error, std::size_t) const {
      EXPECT_EQ(error, kAborted);
      EXPECT_TRUE(strand->running_in_this_thread());
      ++*called;
    }
    const host::strand<host::io_context::executor_type>* strand;
    int* called;
  };
  Memory memory;
  int called = 0;
  const auto strand = host::make_strand(loop);
  const Handler handler{{&memory}, &strand, &called};
  here.async_read_some(host::buffer(buffer), net::cancel_after(timer, 1ms, host::bind_executor(strand, handler)));
  loop.run();
  EXPECT_EQ(called, 1);
  EXPECT_GT(memory.made, 0);
  EXPECT_EQ(memory.left, 0);
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
  const hwt::Deadline deadline = hwt::Deadline::in(20ms);
  auto operation = here.async_read_some(host::buffer(buffer), net::cancel_after(timer, deadline, kDeferred));
  std::move(operation)([&](const Error& error, std::size_t) { ended = error; });
  run_again(loop);
  EXPECT_EQ(ended, Error(kAborted));
  EXPECT_TRUE(deadline.expired());
  EXPECT_NO_THROW(accepted.get());
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

struct Limit : WaitOnManualTimer {
  auto limited(auto token) { return net::cancel_after(timer, 1ms, std::move(token)); }
  auto on_other(auto token) { return host::bind_executor(other, std::move(token)); }
  auto stoppable(auto token) { return host::bind_cancellation_slot(signal.slot(), std::move(token)); }
  /// Expects that the limit of a wait comes to the loop, and then cancels and completes on the other one.
  void expect_all_on_other(auto token) {
    errors.clear();
    for (host::io_context* const each : {&loop, &other}) each->restart();
    async_wait(timer, loop.get_executor(), kFar, std::move(token));
    timer.advance(2ms);
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(errors.empty());
      EXPECT_EQ(loop.poll(), 1u);
      EXPECT_EQ(other.poll(), 1u);
    }
    EXPECT_EQ(errors, std::vector<Error>{kAborted});
  }

  host::io_context other;
  host::cancellation_signal signal;
};

TEST_F(Limit, CancelsOnTheExecutorOfTheHandlerWhereverItIsBound) {
  expect_all_on_other(limited(on_other(Note{&errors})));
  expect_all_on_other(on_other(limited(Note{&errors})));
  expect_all_on_other(on_other(stoppable(limited(Note{&errors}))));
  expect_all_on_other(stoppable(on_other(limited(Note{&errors}))));
  Error error;
  const auto note = [&] { errors.push_back(error); };
  expect_all_on_other(host::redirect_error(on_other(limited(note)), error));
  errors.clear();
  async_wait(timer, loop.get_executor(), kFar, host::redirect_error(limited(note), error));
  timer.advance(2ms);
  EXPECT_EQ(run_again(loop), 2u) << "not on the executor of the wait";
  EXPECT_EQ(errors, std::vector<Error>{kAborted});
}

/// Begins a wait when its limit has expired and has found nothing in the slot. Then replaces its initiation.
struct BeginsLate {
  using executor_type = host::io_context::executor_type;
  executor_type get_executor() const noexcept { return test->loop.get_executor(); }
  template <class Handler>
  void operator()(Handler&& handler) const {
    test->timer.advance(2ms);
    EXPECT_EQ(test->loop.poll(), 1u);
    async_wait(test->timer, get_executor(), kFar, std::forward<Handler>(handler));
    (*replace)();
  }

  Limit* test;
  const std::function<void()>* replace;
};

TEST_F(Limit, IsNotLostIfItExpiresBeforeTheOperationHasBegunWhichMayDestroyTheInitiation) {
  std::function<void()> replace;
  const auto with = [&](host::cancellation_type type) {
    auto token = net::cancel_after(timer, 1ms, kDeferred, type);
    return host::async_initiate<decltype(token), void(Error)>(BeginsLate{this, &replace}, token);
  };
  auto operation = with(host::cancellation_type::terminal);
  replace = [&] { operation = with(host::cancellation_type::none); };
  std::move(operation)(Note{&errors});
  EXPECT_TRUE(errors.empty());
  loop.restart();
  loop.poll();
  EXPECT_EQ(errors, std::vector<Error>{kAborted});
}

TEST_F(CancelAfter, LimitsAnInitiationThatGetsItsSocketAsAReference) {
  const auto note = [&](const Error& error, std::size_t) { ended = error; };
  auto token = net::cancel_after(timer, 2ms, host::bind_executor(loop, note));
  host::async_initiate<decltype(token), void(Error, std::size_t)>(
      [this](auto handler, decltype(here)& socket) {
        socket.async_read_some(host::buffer(buffer), std::move(handler));
      },
      token, std::ref(here));
  loop.run();
  EXPECT_EQ(ended, Error(kAborted));
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

}  // namespace
}  // namespace asio_test
