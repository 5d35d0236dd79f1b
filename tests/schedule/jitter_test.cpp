// The rules of jitter.h.

#include "hashed_wheel_timer/jitter.h"

#include "tests/support/test_support.h"

#if defined(__unix__)
#include <unistd.h>

#include "tests/support/forked_child.h"
#endif

namespace hwt::test {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kMin = (nanoseconds::min)();
constexpr nanoseconds kMax = (nanoseconds::max)();
constexpr int kDraws = 10000;

/// The smallest and the largest of many draws. The probability that all of them miss a given tenth of the range is less
/// than 10^-450.
template <class F>
std::pair<nanoseconds, nanoseconds> extremes(F draw) {
  std::pair<nanoseconds, nanoseconds> result(kMax, kMin);
  for (int i = 0; i < kDraws; ++i) {
    const nanoseconds value = draw();
    result = {std::min(result.first, value), std::max(result.second, value)};
  }
  return result;
}

TEST(JitterBetween, EachValueOfASmallRangeComesUp) {
  std::set<nanoseconds> seen;
  for (int i = 0; i < kDraws; ++i) seen.insert(jitter::between(5ns, 8ns));
  EXPECT_EQ(seen, std::set<nanoseconds>({5ns, 6ns, 7ns}));
}

TEST(JitterBetween, TheWholeRangeDoesNotOverflow) {
  const auto [lowest, highest] = extremes([] { return jitter::between(kMin, kMax); });
  EXPECT_LT(lowest, kMin / 2);
  EXPECT_GT(highest, kMax / 2);
}

#if defined(__unix__)
TEST(JitterBetween, IsDifferentInEachForkedChild) {
  std::set<nanoseconds> seen{jitter::between(0ns, kMax)};  // this thread has a generator now
  for (int child = 0; child < 2; ++child) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    const int status = status_of_child([&] {
      const nanoseconds drawn = jitter::between(0ns, kMax);
      return write(ends[1], &drawn, sizeof drawn) == sizeof drawn ? 0 : 1;
    });
    EXPECT_EQ(status, 0);
    close(ends[1]);
    nanoseconds drawn{};
    EXPECT_EQ(read(ends[0], &drawn, sizeof drawn), static_cast<ssize_t>(sizeof drawn));
    close(ends[0]);
    seen.insert(drawn);
  }
  seen.insert(jitter::between(0ns, kMax));
  EXPECT_EQ(seen.size(), 4u);
}
#endif

TEST(Jitter, FillsItsRange) {
  struct Row {
    const char* name;
    std::function<nanoseconds()> draw;
    nanoseconds first;
    nanoseconds end;  // the first value that must not come up
  };
  for (const auto& [name, draw, first, end] :
       {Row{"between", [] { return jitter::between(1s, 2s); }, 1s, 2s},
        Row{"around", [] { return jitter::around(10s, 0.05); }, 9500ms, 10500ms + 1ns},
        Row{"around, with the largest fraction", [] { return jitter::around(10s, 1); }, 0s, 20s + 1ns},
        Row{"first_half", [] { return jitter::first_half(10s); }, 5s, 10s}}) {
    SCOPED_TRACE(name);
    const auto [lowest, highest] = extremes(draw);
    EXPECT_GE(lowest, first);
    EXPECT_LT(lowest, first + (end - first) / 10);
    EXPECT_GT(highest, end - (end - first) / 10);
    EXPECT_LT(highest, end);
  }
}

TEST(Jitter, TheSmallestRanges) {
  EXPECT_EQ(jitter::between(-1ns, 0ns), -1ns);
  EXPECT_EQ(jitter::around(10s, 0), 10s);
  EXPECT_EQ(jitter::around(0s, 1), 0s);
  EXPECT_EQ(jitter::first_half(1ns), 0ns);
}

TEST(Jitter, TheLongestTimesDoNotOverflow) {
  EXPECT_EQ(jitter::around(kMax, 0), kMax);
  EXPECT_GE(jitter::first_half(kMax), kMax / 2);
  for (const double fraction : {0.5, 0.9999999999999999, 1.0}) {
    EXPECT_GE(extremes([=] { return jitter::around(kMax, fraction); }).first, 0s);
  }
}

TEST(Jitter, BadRangesAreNamed) {
  const auto message = [](auto f) { return message_of<std::invalid_argument>(f); };
  EXPECT_EQ(message([] { jitter::between(2ns, 2ns); }), "jitter::between: lo: 2 ns (expected: less than hi, 2 ns)");
  EXPECT_EQ(message([] { jitter::between(3ns, -2ns); }), "jitter::between: lo: 3 ns (expected: less than hi, -2 ns)");
  EXPECT_EQ(message([] { jitter::around(-1ns, 0.5); }), "jitter::around: mean: -1 ns (expected: 0 ns or more)");
  EXPECT_EQ(message([] { jitter::around(1ns, -0.5); }), "jitter::around: fraction: -0.5 (expected: 0 .. 1)");
  EXPECT_EQ(message([] { jitter::around(1ns, 1.5); }), "jitter::around: fraction: 1.5 (expected: 0 .. 1)");
  EXPECT_EQ(message([] { jitter::around(1ns, -1e-9); }), "jitter::around: fraction: -1e-09 (expected: 0 .. 1)");
  EXPECT_EQ(message([] { jitter::around(1ns, 1.0000000000000002); }),
            "jitter::around: fraction: 1.0000000000000002 (expected: 0 .. 1)");
  EXPECT_TRUE(contains(message([] { jitter::around(1ns, std::numeric_limits<double>::quiet_NaN()); }), "nan"));
  EXPECT_EQ(message([] { jitter::first_half(0ns); }), "jitter::first_half: full: 0 ns (expected: 1 ns or more)");
}

TEST(Jitter, ThreadsDrawDifferentNumbers) {
  constexpr int kThreads = 4;
  std::mutex mutex;
  std::set<nanoseconds> seen;
  run_together(kThreads, [&](int) {
    for (int i = 0; i < 100; ++i) {
      const nanoseconds value = jitter::between(kMin, kMax);
      const std::lock_guard lock(mutex);
      seen.insert(value);
    }
  });
  EXPECT_EQ(seen.size(), 100U * kThreads);
}

}  // namespace
}  // namespace hwt::test
