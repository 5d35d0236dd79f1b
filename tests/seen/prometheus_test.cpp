// What TimerCollector promises, on a timer whose figures are given, and on the real ones.

#include "hashed_wheel_timer/prometheus.h"

#include <prometheus/text_serializer.h>

#include <cmath>
#include <map>

#include "tests/support/any_timer.h"

namespace hwt {
namespace {

using namespace std::chrono_literals;
using hwt::prometheus::CollectorGroup;
using hwt::prometheus::TimerCollector;
using ::prometheus::ClientMetric;
using ::prometheus::MetricFamily;
using ::prometheus::MetricType;
using Labels = std::map<std::string, std::string>;

/// The functions of a timer that the collector calls.
struct Given {
  TimerStats figures;
  LatencyHistogram histogram;
  TimerStats stats() const { return figures; }
  LatencyHistogram lateness() const { return histogram; }
};

MetricFamily family_of(const std::vector<MetricFamily>& families, const std::string& name) {
  for (const MetricFamily& family : families)
    if (family.name == name) return family;
  ADD_FAILURE() << "no family " << name;
  return {name, "", MetricType::Untyped, {ClientMetric()}};
}

std::uint64_t below(const ClientMetric::Histogram& histogram, double bound) {
  for (const auto& bucket : histogram.bucket)
    if (bucket.upper_bound == bound) return bucket.cumulative_count;
  ADD_FAILURE() << "no bucket " << bound;
  return 0;
}

ClientMetric::Histogram histogram_of(const Given& given) {
  return family_of(TimerCollector<Given>(given).Collect(), "hwt_lateness_seconds").metric[0].histogram;
}

TEST(TimerCollector, HasEachFigureUnderItsNameAndItsType) {
  Given given;
  given.figures = {.scheduled = 1,
                   .expired = 2,
                   .cancelled = 3,
                   .rejected = 4,
                   .unprocessed = 5,
                   .pending = 6,
                   .ticks = 7,
                   .wakeups = 8,
                   .backlog = 9,
                   .task_errors = 10,
                   .running_for = 1500ms,
                   .slow_tasks = 11,
                   .busy = 2500ms,
                   .in_tasks = 500ms};
  const auto families = TimerCollector<Given>(given).Collect();
  const std::map<std::string, double> counters = {{"hwt_timeouts_scheduled_total", 1},
                                                  {"hwt_timeouts_expired_total", 2},
                                                  {"hwt_timeouts_cancelled_total", 3},
                                                  {"hwt_timeouts_rejected_total", 4},
                                                  {"hwt_timeouts_unprocessed_total", 5},
                                                  {"hwt_ticks_total", 7},
                                                  {"hwt_wakeups_total", 8},
                                                  {"hwt_task_errors_total", 10},
                                                  {"hwt_slow_tasks_total", 11},
                                                  {"hwt_busy_seconds_total", 2.5},
                                                  {"hwt_in_tasks_seconds_total", 0.5}};
  const std::map<std::string, double> gauges = {
      {"hwt_timeouts_pending", 6}, {"hwt_backlog", 9}, {"hwt_task_running_seconds", 1.5}};
  for (const auto& [name, value] : counters) {
    EXPECT_EQ(family_of(families, name).type, MetricType::Counter) << name;
    EXPECT_EQ(family_of(families, name).metric[0].counter.value, value) << name;
  }
  for (const auto& [name, value] : gauges) {
    EXPECT_EQ(family_of(families, name).type, MetricType::Gauge) << name;
    EXPECT_EQ(family_of(families, name).metric[0].gauge.value, value) << name;
  }
  EXPECT_EQ(family_of(families, "hwt_lateness_seconds").type, MetricType::Histogram);
  EXPECT_EQ(families.size(), counters.size() + gauges.size() + 1);
  for (const MetricFamily& family : families) {
    EXPECT_FALSE(family.help.empty()) << family.name;
    EXPECT_EQ(family.metric.size(), 1U) << family.name;
  }
}

TEST(TimerCollector, AddsUpOriginsByLabelAndHasTheTenWithTheMostPendingTimeouts) {
  ManualTimer timer{{.tick_duration = 1ms, .trace_origins = true}, std::chrono::steady_clock::time_point(5s)};
  const TimerCollector<> collector(timer, {{"timer", "requests"}});
  const std::size_t without_origins = collector.Collect().size();
  for (std::uint32_t line = 1; line <= 12; ++line) {
    for (std::uint32_t i = line == 12 ? 6 : 0; i != line; ++i) timer.new_timeout([] {}, 1h, Origin("rpc.cpp", line));
  }
  timer.advance(30s);
  for (int i = 0; i != 6; ++i) timer.new_timeout([] {}, 1h, Origin("rpc.cpp:12"));
  timer.advance(60s);
  const auto families = collector.Collect();
  EXPECT_EQ(families.size(), without_origins + 2);
  const auto pending = family_of(families, "hwt_origin_pending");
  const auto oldest = family_of(families, "hwt_origin_oldest_seconds");
  for (const MetricFamily& family : {pending, oldest}) {
    ASSERT_EQ(family.metric.size(), 10U);
    for (std::uint32_t i = 0; i != 10; ++i) {
      EXPECT_NEAR(family.metric[i].gauge.value, family.name == pending.name ? 12 - i : 90, 1e-5);
      ASSERT_EQ(family.metric[i].label.size(), 2U);
      EXPECT_EQ(family.metric[i].label[0].value, "requests");
      EXPECT_EQ(family.metric[i].label[1].name, "origin");
      EXPECT_EQ(family.metric[i].label[1].value, "rpc.cpp:" + std::to_string(12 - i));
    }
  }
}

TEST(TimerCollector, BucketsAreCumulativeWithBoundsThatBelongToThem) {
  Given given;
  for (const std::chrono::nanoseconds value :
       std::vector<std::chrono::nanoseconds>{0ns, 1us, 1001ns, 2us, 1024us, 1024001ns, 1h}) {
    given.histogram.add(value);
  }
  const ClientMetric::Histogram histogram = histogram_of(given);
  EXPECT_EQ(histogram.sample_count, 7U);
  EXPECT_DOUBLE_EQ(histogram.sample_sum, 3600.002052002);
  const std::map<double, std::uint64_t> expected = {{1e-6, 2},    {2e-6, 4},      {512e-6, 4},  {1024e-6, 5},
                                                    {2048e-6, 6}, {67.108864, 6}, {HUGE_VAL, 7}};
  for (const auto& [bound, count] : expected) EXPECT_EQ(below(histogram, bound), count) << bound;
  EXPECT_EQ(histogram.bucket.size(), 28U);
}

TEST(TimerCollector, NoBucketEverFalls) {
  Given given;
  ClientMetric::Histogram before = histogram_of(given);
  for (std::chrono::nanoseconds value = 100ns; value < 100h; value = value * 11 / 10) {
    given.histogram.add(value);
    const ClientMetric::Histogram now = histogram_of(given);
    std::uint64_t counted = 0;
    for (std::size_t i = 0; i < now.bucket.size(); ++i) {
      ASSERT_GE(now.bucket[i].cumulative_count, before.bucket[i].cumulative_count);
      ASSERT_GE(now.bucket[i].cumulative_count, counted);
      counted = now.bucket[i].cumulative_count;
    }
    ASSERT_EQ(counted, now.sample_count);
    before = now;
  }
}

TEST(TimerCollector, RefusesALabelThatCannotBeOne) {
  const Given given;
  for (const char* name : {"", "1st", "with-dash", "__own", "le", "origin", "two words"}) {
    EXPECT_TRUE(test::contains(
        test::message_of<std::invalid_argument>([&] { TimerCollector<Given>(given, {{name, "value"}}); }),
        "label: \"" + std::string(name) + "\""))
        << name;
  }
  EXPECT_TRUE(test::contains(
      test::message_of<std::invalid_argument>([&] { TimerCollector<Given>(given, {{"a\nb\x1b", "value"}}); }),
      "label: \"a?b?\""))
      << "a message is one line";
}

TEST(TimerCollector, BytesOfALabelThatAreNotUtf8BecomeQuestionMarks) {
  const std::string good = "\xC3\xA9\xE6\x97\xA5\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF";
  const std::string bad =
      "\xFF \xC1\x80 \xE0\x9F\xBF \xED\xA0\x80 \xF0\x8F\x80\x80 \xF4\x90\x80\x80 \xF5\x80 \xE6\x97 \xC3";
  const Given given;
  const auto families = TimerCollector<Given>(given, {{"timer", good + bad}}).Collect();
  EXPECT_EQ(families[0].metric[0].label[0].value, good + "? ?? ??? ??? ???? ???? ?? ?? ?");
}

TEST(CollectorGroup, MakesOneFamilyOfEachNameWithTheLabelsOnEveryMetricAndReadsAtEachCollection) {
  Given first, second;
  CollectorGroup group;
  group.add(std::make_shared<TimerCollector<Given>>(first, Labels{{"timer", "first"}, {"zone", "a"}}));
  group.add(std::make_shared<TimerCollector<Given>>(second, Labels{{"timer", "second"}, {"zone", "a"}}));
  first.figures.scheduled = 1;
  second.figures.scheduled = 2;
  const auto families = group.Collect();
  std::set<std::string> names;
  for (const MetricFamily& family : families) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    for (const ClientMetric& metric : family.metric) {
      ASSERT_EQ(metric.label.size(), 2U);
      EXPECT_EQ(metric.label[0].name, "timer");
      EXPECT_EQ(metric.label[1].name, "zone");
    }
  }
  const MetricFamily scheduled = family_of(families, "hwt_timeouts_scheduled_total");
  ASSERT_EQ(scheduled.metric.size(), 2U);
  EXPECT_EQ(scheduled.metric[0].counter.value, 1);
  EXPECT_EQ(scheduled.metric[1].counter.value, 2);
  EXPECT_EQ(scheduled.metric[1].label[0].value, "second");
}

template <class T>
class TimerCollectorOf : public ::testing::Test {};
TYPED_TEST_SUITE(TimerCollectorOf, test::AllTimers);

TYPED_TEST(TimerCollectorOf, ShowsTheCountersOfTheTimer) {
  const auto owner = test::make_timer<TypeParam>();
  Timer& timer = *owner;
  bool ran = false;
  timer.new_timeout([&] { ran = true; }, 0s);
  ASSERT_TRUE(test::passes_until(*owner, [&] { return timer.stats().expired == 1; }));
  timer.new_timeout([] {}, test::kFar).cancel();
  timer.new_timeout([] {}, test::kFar);
  timer.stop();
  EXPECT_TRUE(ran);
  const TimerCollector<> collector(timer);
  const auto families = collector.Collect();
  for (const auto& [name, value] :
       std::map<std::string, double>{{"scheduled", 3}, {"expired", 1}, {"cancelled", 1}, {"unprocessed", 1}}) {
    EXPECT_EQ(family_of(families, "hwt_timeouts_" + name + "_total").metric[0].counter.value, value) << name;
  }
  EXPECT_EQ(family_of(families, "hwt_lateness_seconds").metric[0].histogram.sample_count, 1U);
  const std::string text = ::prometheus::TextSerializer().Serialize(families);
  EXPECT_TRUE(test::contains(text, "# TYPE hwt_lateness_seconds histogram\n"));
  EXPECT_TRUE(test::contains(text, "hwt_lateness_seconds_bucket{le=\"+Inf\"} 1\n")) << text;
}

}  // namespace
}  // namespace hwt
