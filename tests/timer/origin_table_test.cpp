// The numbers of origins, of which a process has a limited number.

#include "hashed_wheel_timer/internal/memory/origin_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using internal::OriginTable;
using internal::Trace;

TEST(TraceValue, HasTheTimeAndTheNumber) {
  for (const std::int64_t time :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{123'456'789'012'345},
        (std::numeric_limits<std::int64_t>::max)(), (std::numeric_limits<std::int64_t>::min)()}) {
    for (const std::uint32_t number : {0U, 1U, 4095U}) {
      const Trace trace(Trace(time, number).value());
      EXPECT_EQ(trace.number(), number);
      const std::int64_t scheduled = std::chrono::nanoseconds(trace.scheduled().time_since_epoch()).count();
      EXPECT_LT(static_cast<std::uint64_t>(time) - static_cast<std::uint64_t>(scheduled), Trace::kOrigins);
    }
  }
}

TEST(OriginNumbers, AreTheSameInAllThreads) {
  constexpr std::uint32_t kLines = 500;
  std::vector<std::vector<std::uint32_t>> numbers(4);
  Barrier begin(4);
  std::vector<std::thread> threads;
  for (auto& of_thread : numbers) {
    threads.emplace_back([&] {
      begin.arrive_and_wait();
      for (std::uint32_t line = 1; line <= kLines; ++line) {
        of_thread.push_back(OriginTable::number_of(Origin("same.cpp", line)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& of_thread : numbers) EXPECT_EQ(of_thread, numbers[0]);
  for (std::uint32_t line = 1; line <= kLines; ++line) {
    EXPECT_EQ(OriginTable::at(numbers[0][line - 1]), Origin("same.cpp", line));
  }
}

// The last test of this process: it uses up the numbers.
TEST(OriginNumbers, BeyondTheLimitAreOfAnUnknownOrigin) {
  std::set<std::uint32_t> numbers;
  for (std::uint32_t line = 1; line <= 10'000; ++line) {
    const std::uint32_t number = OriginTable::number_of(Origin("many.cpp", line));
    if (number == 0) continue;
    EXPECT_LT(number, Trace::kOrigins);
    EXPECT_EQ(OriginTable::at(number), Origin("many.cpp", line));
    EXPECT_TRUE(numbers.insert(number).second);
  }
  EXPECT_GT(numbers.size(), 3'000U);
  HashedWheelTimer timer{{.trace_origins = true}};
  for (std::uint32_t line = 1; line <= 10'000; ++line) timer.add([] {}, kFar, Origin("more.cpp", line));
  std::int64_t count = 0;
  for (const PendingOrigin& found : timer.pending_by_origin()) count += found.count;
  EXPECT_EQ(count, 10'000);
  EXPECT_EQ(timer.pending_by_origin()[0].origin.describe(), "unknown");
}

}  // namespace
}  // namespace hwt
