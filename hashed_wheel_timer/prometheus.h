// SPDX-License-Identifier: Apache-2.0
#pragma once

// Needs prometheus-cpp (its core alone). Not included by any other header.

#include <prometheus/check_names.h>
#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/detail/refuse_nan.h"
#include "hashed_wheel_timer/histogram.h"
#include "hashed_wheel_timer/stats.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt::prometheus {

/// Counters, gauges and the lateness histogram of a timer, as a prometheus::Collectable. The timer must outlive it.
///
///   ::prometheus::Exposer exposer("127.0.0.1:9091");
///   const auto metrics = std::make_shared<hwt::prometheus::TimerCollector<>>(timer);
///   exposer.RegisterCollectable(metrics);   // which keeps a weak pointer only
///
/// Guarantees: metrics are read when they are collected; between two scrapes it costs nothing. Counters grow, except
/// that hwt_timeouts_scheduled_total may include a refused timeout for a moment, and then fall again; see TimerStats.
/// `T` is a Timer of any kind, or another class with its stats() and lateness(). If the timer traces origins, each
/// collection walks over its pending timeouts, and exports the ten origins with the most of them in the label "origin".
/// Origins with equal labels, such as a line and a name like "rpc.cpp:7", are added up. Prometheus refuses labels that
/// are not UTF-8, so their wrong bytes become question marks.
/// Threads: any thread may collect, several at once.
/// Not for: several timers at one endpoint, whose names would repeat; see CollectorGroup.
/// Source: prometheus.io, "Metric and label naming" and "Histograms and summaries".
template <class T = Timer>
class TimerCollector : public ::prometheus::Collectable {
 public:
  /// Makes a collector whose metrics all have these labels. Throws std::invalid_argument for a label with an
  /// invalid name, and for "le" and "origin".
  explicit TimerCollector(const T& timer, std::map<std::string, std::string> labels = {}) : timer_(timer) {
    for (auto& [name, value] : labels) {
      if (!is_label(name) || name == "le" || name == "origin") {
        hwt::detail::refuse_text("label", name.c_str(),
                                 "letters, digits and _, not a digit or __ first, not \"le\" or \"origin\"");
      }
      labels_.push_back({name, utf8(std::move(value))});
    }
  }

  /// Returns a family for each metric. Throws std::bad_alloc.
  std::vector<::prometheus::MetricFamily> Collect() const override {
    const TimerStats stats = timer_.stats();
    std::vector<::prometheus::MetricFamily> families;
    const auto counter = [&](const char* name, const char* help, auto value) {
      add(families, ::prometheus::MetricType::Counter, name, help).counter.value = static_cast<double>(value);
    };
    const auto gauge = [&](const char* name, const char* help, auto value) {
      add(families, ::prometheus::MetricType::Gauge, name, help).gauge.value = static_cast<double>(value);
    };
    counter("hwt_timeouts_scheduled_total", "Timeouts accepted.", stats.scheduled);
    counter("hwt_timeouts_expired_total", "Timeouts claimed for execution.", stats.expired);
    counter("hwt_timeouts_cancelled_total", "Timeouts cancelled before they expired.", stats.cancelled);
    counter("hwt_timeouts_rejected_total", "Timeouts refused by max_pending_timeouts.", stats.rejected);
    counter("hwt_timeouts_unprocessed_total", "Timeouts still pending when the timer stopped.", stats.unprocessed);
    gauge("hwt_timeouts_pending", "Timeouts neither expired, cancelled nor unprocessed.", stats.pending);
    gauge("hwt_backlog", "Entries that the worker has not put into the wheel yet.", stats.backlog);
    counter("hwt_ticks_total", "Processed ticks.", stats.ticks);
    counter("hwt_wakeups_total", "Returns of the worker from its sleep.", stats.wakeups);
    counter("hwt_task_errors_total", "Exceptions from tasks, cancelled(), the executor and on_slow_task.",
            stats.task_errors);
    counter("hwt_slow_tasks_total", "Tasks that ran longer than slow_task on the worker.", stats.slow_tasks);
    counter("hwt_busy_seconds_total", "Time for which the worker was awake.", seconds(stats.busy));
    counter("hwt_in_tasks_seconds_total", "The part of hwt_busy_seconds_total in tasks.", seconds(stats.in_tasks));
    gauge("hwt_task_running_seconds", "How long the worker has been at its present tasks; 0 when none runs.",
          seconds(stats.running_for));
    add(families, ::prometheus::MetricType::Histogram, "hwt_lateness_seconds",
        "From the deadline of a timeout until the worker started to process its tick.")
        .histogram = histogram(timer_.lateness());
    if constexpr (requires { timer_.pending_by_origin(); }) add_origins(families);
    return families;
  }

 private:
  static constexpr std::size_t kOrigins = 10;  // the most that are exported

  // Upper bounds: a microsecond and its doublings, to a minute and some seconds.
  static constexpr int kDoublings = 26;

  /// From version 1.1 on prometheus-cpp also takes the type of the metric: a histogram has a label "le" of its own.
  template <class Name>
  static bool is_label(const Name& name) {
    if constexpr (requires { ::prometheus::CheckLabelName(name); }) {
      return ::prometheus::CheckLabelName(name);
    } else {
      return ::prometheus::CheckLabelName(name, ::prometheus::MetricType::Histogram);
    }
  }

  /// Returns the text with a question mark for each byte that does not belong to a character in UTF-8.
  static std::string utf8(std::string text) {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    for (std::size_t i = 0, more = 0; i < text.size(); i += more + 1) {
      const unsigned lead = byte(i), next = byte(i + 1);
      more = lead < 0xC0 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
      // In this order: no lead, forms longer than necessary, surrogates, numbers above 0x10FFFF.
      bool wrong = (lead >= 0x80 && lead < 0xC2) || lead > 0xF4 || (lead == 0xE0 && next < 0xA0) ||
                   (lead == 0xF0 && next < 0x90) || (lead == 0xED && next > 0x9F) || (lead == 0xF4 && next > 0x8F);
      for (std::size_t k = 1; k <= more; ++k) wrong = wrong || (byte(i + k) & 0xC0U) != 0x80;
      if (!wrong) continue;
      text[i] = '?';
      more = 0;
    }
    return text;
  }

  static double seconds(std::chrono::nanoseconds duration) { return std::chrono::duration<double>(duration).count(); }

  ::prometheus::ClientMetric& add(std::vector<::prometheus::MetricFamily>& families, ::prometheus::MetricType type,
                                  const char* name, const char* help) const {
    ::prometheus::ClientMetric metric;
    metric.label = labels_;
    families.push_back({name, help, type, {std::move(metric)}});
    return families.back().metric.front();
  }

  /// Adds nothing if there is no origin.
  void add_origins(std::vector<::prometheus::MetricFamily>& families) const {
    // By label, because Prometheus drops one of two samples with equal labels. A line and a name can have equal labels.
    std::map<std::string, PendingOrigin> by_label;
    for (const PendingOrigin& origin : timer_.pending_by_origin()) {
      PendingOrigin& sum = by_label[utf8(origin.origin.describe())];
      sum.count += origin.count;
      sum.oldest = (std::min)(sum.oldest, origin.oldest);
    }
    std::vector<std::pair<std::string, PendingOrigin>> origins(by_label.begin(), by_label.end());
    std::ranges::stable_sort(origins, std::greater(), [](const auto& each) { return each.second.count; });
    if (origins.size() > kOrigins) origins.resize(kOrigins);
    const auto now = timer_.now();
    const auto gauges = [&](const char* name, const char* help, auto value_of) {
      ::prometheus::MetricFamily family{name, help, ::prometheus::MetricType::Gauge, {}};
      for (const auto& [label, origin] : origins) {
        ::prometheus::ClientMetric metric;
        metric.label = labels_;
        metric.label.push_back({"origin", label});
        metric.gauge.value = value_of(origin);
        family.metric.push_back(std::move(metric));
      }
      if (!family.metric.empty()) families.push_back(std::move(family));
    };
    gauges("hwt_origin_pending", "Pending timeouts of the origins with the most of them.",
           [](const PendingOrigin& origin) { return static_cast<double>(origin.count); });
    gauges("hwt_origin_oldest_seconds", "How long ago the oldest pending timeout of the origin was scheduled.",
           [now](const PendingOrigin& origin) { return seconds(now - origin.oldest); });
  }

  /// Each bound is the end of a bucket of LatencyHistogram, so the counts are exact, and none ever falls.
  static ::prometheus::ClientMetric::Histogram histogram(const LatencyHistogram& lateness) {
    ::prometheus::ClientMetric::Histogram result;
    result.sample_count = lateness.count();
    result.sample_sum = seconds(lateness.sum());
    std::chrono::nanoseconds bound = std::chrono::microseconds(1);
    for (int i = 0; i <= kDoublings; ++i, bound *= 2) result.bucket.push_back({0, seconds(bound)});
    result.bucket.push_back({0, std::numeric_limits<double>::infinity()});
    std::size_t i = 0;
    bound = std::chrono::microseconds(1);
    lateness.for_each([&](std::chrono::nanoseconds upper, std::uint64_t count) {
      for (; upper > bound && i + 1 < result.bucket.size(); bound *= 2) ++i;
      result.bucket[i].cumulative_count += count;
    });
    for (i = 1; i < result.bucket.size(); ++i) {
      result.bucket[i].cumulative_count += result.bucket[i - 1].cumulative_count;
    }
    return result;
  }

  const T& timer_;
  std::vector<::prometheus::ClientMetric::Label> labels_;
};

/// Several collectors at one endpoint. Their metrics of one name become one family, as the text format demands.
///
///   using Collector = hwt::prometheus::TimerCollector<>;
///   using Labels = std::map<std::string, std::string>;
///   const auto metrics = std::make_shared<hwt::prometheus::CollectorGroup>();
///   metrics->add(std::make_shared<Collector>(requests, Labels{{"timer", "requests"}}));
///   metrics->add(std::make_shared<Collector>(connections, Labels{{"timer", "connections"}}));
///
/// Guarantees: families are in the order in which their names first came.
/// Threads: any thread may collect, several at once. Call add() before the group is registered.
/// Not for: collectors with the same labels.
class CollectorGroup : public ::prometheus::Collectable {
 public:
  /// Adds a collector, which must not be null. Throws std::bad_alloc.
  void add(std::shared_ptr<const ::prometheus::Collectable> collector) { collectors_.push_back(std::move(collector)); }

  /// Returns the families of all collectors. Throws what their Collect() throws.
  std::vector<::prometheus::MetricFamily> Collect() const override {
    std::vector<::prometheus::MetricFamily> families;
    std::map<std::string, std::size_t> places;
    for (const auto& collector : collectors_) {
      for (::prometheus::MetricFamily& family : collector->Collect()) {
        const auto [place, is_new] = places.emplace(family.name, families.size());
        if (is_new) {
          families.push_back(std::move(family));
          continue;
        }
        auto& metrics = families[place->second].metric;
        metrics.insert(metrics.end(), family.metric.begin(), family.metric.end());
      }
    }
    return families;
  }

 private:
  std::vector<std::shared_ptr<const ::prometheus::Collectable>> collectors_;
};

}  // namespace hwt::prometheus
