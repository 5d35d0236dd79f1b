// Promise: without memory each function of the C interface fails with ENOMEM and one line, and nothing is lost.

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "hashed_wheel_timer/c.h"
#include "tests/support/allocation_hook.h"

namespace {

using hwt::test::Shortage;

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kHour = 3'600'000 * kMs;

void count(void* argument) { ++*static_cast<int*>(argument); }

/// Calls the function without memory, and returns its result.
template <class Function>
std::int64_t without_memory(Function&& function) {
  Shortage shortage(0, Shortage::kAll);
  errno = 0;
  const auto result = static_cast<std::int64_t>(function());
  const int error = errno;
  shortage.end();
  EXPECT_EQ(error, ENOMEM);
  EXPECT_NE(std::string(hwt_last_error()).find("out of memory"), std::string::npos) << hwt_last_error();
  return result;
}

class CMemory : public testing::Test {
 protected:
  void SetUp() override {
    hwt_options_init(&options);
    options.kind = HWT_MANUAL;
    options.tick_ns = kMs;
    ASSERT_EQ(hwt_create(&options, &timer), 0);
  }
  void TearDown() override { hwt_destroy(timer); }

  hwt_options options;
  hwt_timer* timer = nullptr;
};

TEST_F(CMemory, CreatingATimer) {
  for (int kind = HWT_HASHED_WHEEL; kind <= HWT_MANUAL; ++kind) {
    options.kind = kind;
    hwt_timer* other = timer;
    EXPECT_EQ(without_memory([&] { return hwt_create(&options, &other); }), ENOMEM);
    EXPECT_EQ(other, nullptr);
  }
}

TEST_F(CMemory, DestroyingATimerFreesAllOfIt) {
  for (int kind = HWT_HASHED_WHEEL; kind <= HWT_MANUAL; ++kind) {
    options.kind = kind;
    const auto live = [&] {
      hwt_timer* other = nullptr;
      ASSERT_EQ(hwt_create(&options, &other), 0);
      for (int i = 0; i < 100; ++i) ASSERT_NE(hwt_add(other, kHour, count, nullptr), 0u);
      hwt_destroy(other);
    };
    live();  // this thread keeps some memory for its next timer
    const std::int64_t before = hwt::test::bytes_in_use;
    live();
    EXPECT_EQ(hwt::test::bytes_in_use, before) << kind;
  }
}

TEST_F(CMemory, AddingEachTimeoutAlsoWithoutMemory) {
  int added = 0;
  int refused = 0;
  for (; added < 3000; ++added) {
    ASSERT_NE(hwt_add(timer, kHour, count, nullptr), 0u);
    hwt_next(timer);  // it goes to the wheel, and only its node stays in use
    Shortage shortage(0, Shortage::kAll);
    errno = 0;
    const hwt_id id = hwt_add(timer, kHour, count, nullptr);
    const int error = errno;
    shortage.end();
    if (id != 0) {
      EXPECT_EQ(hwt_cancel(timer, id), 0);
    } else {
      EXPECT_EQ(error, ENOMEM);
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(hwt_pending(timer), added);
}

TEST_F(CMemory, StartingTheWorker) {
  hwt_timer* threaded = nullptr;
  options.kind = HWT_HASHED_WHEEL;
  ASSERT_EQ(hwt_create(&options, &threaded), 0);
  EXPECT_EQ(without_memory([&] { return hwt_start(threaded); }), ENOMEM);
  EXPECT_EQ(without_memory([&] { return hwt_add(threaded, kHour, count, nullptr); }), 0);
  EXPECT_EQ(hwt_start(threaded), 0);
  hwt_destroy(threaded);
}

TEST_F(CMemory, MovingATimeoutToAnEarlierTime) {
  int ran = 0;
  const hwt_id id = hwt_add(timer, kHour, count, &ran);
  hwt_advance(timer, kMs);  // it is in the wheel now
  EXPECT_EQ(without_memory([&] { return hwt_reschedule(timer, id, kMs); }), -1);
  EXPECT_EQ(hwt_advance(timer, kHour / 2), 0) << "nothing has changed";
  EXPECT_EQ(hwt_reschedule(timer, id, kMs), 0);
  EXPECT_EQ(hwt_advance(timer, kHour / 2 + 2 * kMs), 1);
}

TEST_F(CMemory, Stopping) {
  int freed = 0;
  for (int i = 0; i < 100; ++i) hwt_add(timer, kHour, count, &freed);
  const auto free_it = [](void*, hwt_callback, void* argument) { ++*static_cast<int*>(argument); };
  EXPECT_EQ(without_memory([&] { return hwt_stop(timer, free_it, nullptr); }), ENOMEM);
  EXPECT_EQ(freed, 0);
  EXPECT_EQ(hwt_stop(timer, free_it, nullptr), 0) << "once more";
  EXPECT_EQ(freed, 100);
}

// The timer is HWT_MANUAL, so the thread that calls hwt_advance() is its worker.
TEST_F(CMemory, HandingACallbackToTheExecutorRunsItOnTheWorker) {
  hwt_timer* with_executor = nullptr;
  options.executor = [](void* context, hwt_callback run, void* argument) {
    ++*static_cast<int*>(context);
    run(argument);
  };
  int given = 0;
  options.executor_context = &given;
  ASSERT_EQ(hwt_create(&options, &with_executor), 0);
  int ran = 0;
  for (int i = 0; i < 2; ++i) hwt_add(with_executor, i * 2 * kMs, count, &ran);
  hwt_next(with_executor);  // they are in the wheel now
  {
    Shortage shortage(0, Shortage::kAll);
    hwt_advance(with_executor, kMs);
  }
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(given, 0);
  hwt_advance(with_executor, 3 * kMs);
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(given, 1);
  hwt_destroy(with_executor);
}

}  // namespace
