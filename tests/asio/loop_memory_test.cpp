// A LoopTimer of Asio whose loop is woken and armed without memory, and the memory that its handlers have instead.

#include <new>

#include "hashed_wheel_timer/asio.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

/// A timer whose wheel has memory for near timeouts, and whose alarm is set for an hour.
class LoopWithoutMemory : public ::testing::Test {
 protected:
  LoopWithoutMemory() {
    int ran = 0;
    timer_.new_timeout([] {}, std::chrono::hours(1));
    Timeout of_second_level = timer_.new_timeout([] {}, 2s);  // a late machine has near timeouts there too
    timer_.new_timeout([&] { ++ran; }, 1ms);
    run_until(ran, 1);  // the wheel makes both levels
    of_second_level.cancel();
    timer_.new_timeout([&] { ++ran; }, 1ms);
    run_until(ran, 2);  // the wheel reserves memory for one more
  }

  void run_until(const int& ran, int times) {
    for (const auto end = steady_clock::now() + 60s; ran < times && steady_clock::now() < end;) loop_.run_one_for(60s);
    EXPECT_EQ(ran, times);
  }

  asio::io_context loop_;
  net::LoopTimer timer_{loop_.get_executor()};
};

TEST_F(LoopWithoutMemory, ATimeoutOfAnotherThreadWakesIt) {
  int ran = 0;
  run_together(1, [&](int) {
    timer_.new_timeout([&] { ++ran; }, 1ms).cancel();  // so that the thread has memory for timeouts
    const Shortage shortage(0, Shortage::kAll);
    for (int i = 0; i < 10; ++i) timer_.new_timeout([&] { ++ran; }, (10 - i) * 1ms);
  });
  run_until(ran, 10);
}

TEST_F(LoopWithoutMemory, ItArmsItsAlarmForEarlierAndLaterTimes) {
  int ran = 0;
  run_together(1, [&](int) {
    for (int i = 0; i < 10; ++i) timer_.new_timeout([&] { ++ran; }, (10 - i) * 2ms);
  });
  const Shortage shortage(0, Shortage::kAll);
  run_until(ran, 10);
}

TEST_F(LoopWithoutMemory, ATurnThatFindsNoOtherDeadlineLeavesItsAlarmAlone) {
  const auto handlers_after_many_cancels = [&] {
    std::vector<Timeout> many = far_timeouts(timer_, 40'000, 2h);
    run_together(1, [&](int) {
      for (Timeout& timeout : many) timeout.cancel();  // asks the loop for a turn, to give the memory back
    });
    return loop_.poll();
  };
  handlers_after_many_cancels();  // sets the alarm to the end of the tick in an hour
  EXPECT_EQ(handlers_after_many_cancels(), 1u) << "a second handler is that of an alarm that was set anew";
}

TEST(FirstAlarm, RunThrowsWithoutMemoryAndCanBeCalledAgain) {
  asio::io_context loop;
  net::LoopTimer timer{loop.get_executor()};
  Timeout first = timer.new_timeout(must_not_run, kFar);  // not due when a busy machine comes to poll()
  EXPECT_TRUE(with_failing(0, [&] { loop.poll(); }, Shortage::kAll).bad_alloc);
  EXPECT_TRUE(first.cancel());
  bool ran = false;
  timer.new_timeout([&] { ran = true; }, 1ms);
  loop.run();
  EXPECT_TRUE(ran);
}

TEST(HandlerMemory, ServesOneHandlerAtATimeWithoutOperatorNew) {
  detail::HandlerMemory memory;
  detail::OwnersAllocator<void*, detail::HandlerMemory> allocator(memory);
  const Shortage shortage(0, Shortage::kAll);
  for (int i = 0; i < 3; ++i) {
    void** const handler = allocator.allocate(1);
    EXPECT_THROW(static_cast<void>(allocator.allocate(1)), std::bad_alloc) << "a second one needs operator new";
    allocator.deallocate(handler, 1);
    EXPECT_THROW(static_cast<void>(allocator.allocate(100)), std::bad_alloc) << "a large one needs operator new";
  }
}

TEST(HandlerMemory, TakesTheOthersFromOperatorNew) {
  detail::HandlerMemory memory;
  detail::OwnersAllocator<std::uintptr_t, detail::HandlerMemory> allocator(memory);
  std::array<std::uintptr_t*, 3> handlers{};
  const std::array<std::size_t, 3> sizes{1, 1, 1'000};
  for (std::size_t i = 0; i < handlers.size(); ++i) {
    handlers[i] = allocator.allocate(sizes[i]);
    std::fill_n(handlers[i], sizes[i], i);
  }
  for (std::size_t i = 0; i < handlers.size(); ++i) {
    EXPECT_EQ(std::count(handlers[i], handlers[i] + sizes[i], i), static_cast<std::ptrdiff_t>(sizes[i]));
    allocator.deallocate(handlers[i], sizes[i]);
  }
}

}  // namespace
}  // namespace hwt
