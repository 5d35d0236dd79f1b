#pragma once

#include <cstdint>
#include <latch>
#include <string>

#include "perf/workloads/process.h"

namespace hwt::perf {

/// Counts tasks that run. Only the thread that runs the tasks writes the counters. Others read them after the timer has
/// stopped.
class Fired {
 public:
  explicit Fired(std::int64_t awaited = 0) : awaited_(awaited) {}

  void expired(std::uint64_t id) noexcept {
    sum_ += id;
    if (++count_ == awaited_) all_.count_down();
  }

  void wait_for_all() const { all_.wait(); }

  /// The sums are strings, because some JSON readers do not keep 64 bits.
  void add_counts(Json& figures, std::int64_t scheduled, std::int64_t cancelled, std::uint64_t cancelled_sum) const {
    figures["scheduled"] = scheduled;
    figures["fired"] = count_;
    figures["fired_sum"] = std::to_string(sum_);
    figures["cancelled"] = cancelled;
    figures["cancelled_sum"] = std::to_string(cancelled_sum);
  }

 private:
  std::int64_t count_ = 0;
  std::uint64_t sum_ = 0;
  const std::int64_t awaited_;
  std::latch all_{1};
};

}  // namespace hwt::perf
