// What LatencyHistogram promises, against a sorted vector of the same values.

#include "hashed_wheel_timer/histogram.h"

#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

static_assert(sizeof(LatencyHistogram) < 2500, "lateness() returns it by value");

using Buckets = std::vector<std::pair<nanoseconds, std::uint64_t>>;

Buckets buckets_of(const LatencyHistogram& histogram) {
  Buckets buckets;
  histogram.for_each([&](nanoseconds upper, std::uint64_t count) { buckets.emplace_back(upper, count); });
  return buckets;
}

/// The upper end of the bucket that a value falls into.
nanoseconds end_of_bucket(nanoseconds value) {
  LatencyHistogram histogram;
  histogram.add(value);
  histogram.add(nanoseconds::max());  // or the end would be the value itself
  return buckets_of(histogram).front().first;
}

TEST(LatencyHistogram, IsEmptyAtFirstAndBelowZeroCountsAsZero) {
  LatencyHistogram histogram;
  EXPECT_TRUE(buckets_of(histogram).empty());
  for (const unsigned count : {0U, 2U}) {
    EXPECT_EQ(histogram.count(), count);
    EXPECT_EQ(histogram.sum(), 0ns);
    EXPECT_EQ(histogram.max(), 0ns);
    EXPECT_EQ(histogram.percentile(50), 0ns);
    EXPECT_EQ(histogram.percentile(100), 0ns);
    histogram.add(-1ns);
    histogram.add(nanoseconds::min());
  }
}

TEST(LatencyHistogram, NoBucketFromOneMicrosecondToOneHourIsWiderThanAnEighth) {
  int buckets = 0;
  for (nanoseconds begin = 1us; begin < 1h; ++buckets) {
    const nanoseconds end = end_of_bucket(begin + 1ns);
    ASSERT_GT(end, begin);
    ASSERT_LE(8 * (end - begin), begin) << "of the bucket that begins at " << begin.count() << " ns";
    EXPECT_EQ(end_of_bucket(end), end) << "the upper end belongs to its bucket";
    EXPECT_GT(end_of_bucket(end + 1ns), end);
    begin = end;
  }
  EXPECT_LT(buckets, 300);
}

TEST(LatencyHistogram, PowersOfTwoInMicrosecondsAreUpperEnds) {
  for (nanoseconds power = 1us; power <= 1h; power *= 2) EXPECT_EQ(end_of_bucket(power), power);
}

TEST(LatencyHistogram, HasEveryValueOnceAndPercentileIsTheNearestRankAtMostOneBucketAbove) {
  std::mt19937_64 random(1);
  for (const std::size_t size : {1U, 2U, 3U, 10U, 99U, 100U, 101U, 1000U, 12345U}) {
    std::vector<nanoseconds> model;
    LatencyHistogram histogram;
    // From 20 ns far into the last bucket, each doubling equally likely.
    std::uniform_real_distribution<double> logarithm(3, 43);
    for (std::size_t i = 0; i < size; ++i) {
      model.emplace_back(static_cast<std::int64_t>(std::exp(logarithm(random))));
      histogram.add(model.back());
    }
    std::sort(model.begin(), model.end());
    for (int tenths = 0; tenths <= 1000; ++tenths) {
      const std::size_t rank = std::max<std::size_t>((static_cast<std::size_t>(tenths) * size + 999) / 1000, 1);
      const nanoseconds exact = model[rank - 1];
      const nanoseconds told = histogram.percentile(tenths / 10.0);
      ASSERT_GE(told, exact) << tenths << " tenths of a percent of " << size;
      if (exact <= 1h) {
        ASSERT_LE(told, exact + std::max(exact / 8, 125ns)) << tenths << " tenths of a percent of " << size;
      }
    }
    nanoseconds before = -1ns;
    for (const auto& [upper, count] : buckets_of(histogram)) {
      ASSERT_GT(upper, before);
      ASSERT_GT(count, 0U);
      const auto first = std::upper_bound(model.begin(), model.end(), before);
      const auto last = std::upper_bound(model.begin(), model.end(), upper);
      ASSERT_EQ(count, static_cast<std::uint64_t>(last - first)) << "up to " << upper.count() << " ns";
      before = upper;
    }
    EXPECT_EQ(before, histogram.max());
    EXPECT_EQ(histogram.count(), size);
    EXPECT_EQ(histogram.max(), model.back());
    EXPECT_EQ(histogram.percentile(100), model.back());
  }
}

TEST(LatencyHistogram, PercentilesOutsideOfTheRangeAreItsEnds) {
  LatencyHistogram histogram;
  for (const nanoseconds value : std::vector<nanoseconds>{3us, 5ms}) histogram.add(value);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double p : {0.0, -1.0, -kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(histogram.percentile(p), end_of_bucket(3us)) << p;
  }
  for (const double p : {100.0, 101.0, kInfinity}) EXPECT_EQ(histogram.percentile(p), 5ms) << p;
}

TEST(LatencyHistogram, TheSumSaturates) {
  LatencyHistogram histogram;
  histogram.add(nanoseconds::max() - 5ns);
  EXPECT_EQ(histogram.sum(), nanoseconds::max() - 5ns);
  histogram.add(5ns);
  EXPECT_EQ(histogram.sum(), nanoseconds::max());
  histogram.add(1ns);
  histogram.add(nanoseconds::max());
  EXPECT_EQ(histogram.sum(), nanoseconds::max());
  EXPECT_EQ(histogram.count(), 4U);
}

TEST(LatencyHistogram, BeyondAnHourTheLastBucketEndsAtTheMaximum) {
  LatencyHistogram histogram;
  histogram.add(1h);
  EXPECT_EQ(histogram.percentile(100), 1h);
  for (const nanoseconds value : {nanoseconds(2h), nanoseconds(100h), nanoseconds(3h)}) histogram.add(value);
  EXPECT_EQ(histogram.percentile(50), 100h);
  EXPECT_EQ(histogram.percentile(100), 100h);
  EXPECT_LE(histogram.percentile(25), nanoseconds(1h) * 9 / 8);
  histogram.add(nanoseconds::max());
  EXPECT_EQ(histogram.percentile(100), nanoseconds::max());
  EXPECT_EQ(buckets_of(histogram).size(), 2U);
}

}  // namespace
}  // namespace hwt
