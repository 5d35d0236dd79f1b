#pragma once

#include <cstdint>
#include <latch>

namespace perf {

/// Told by the tasks that they run. The counters belong to the thread that runs the tasks; others read them when the
/// timer has been stopped, after the join of that thread.
class Fired {
 public:
  explicit Fired(std::int64_t awaited = 0) : awaited_(awaited) {}

  void expired(std::uint64_t id) noexcept {
    sum_ += id;
    if (++count_ == awaited_) all_.count_down();
  }

  void wait_for_all() const { all_.wait(); }

  std::int64_t count() const { return count_; }
  std::uint64_t sum() const { return sum_; }

 private:
  std::int64_t count_ = 0;
  std::uint64_t sum_ = 0;
  const std::int64_t awaited_;
  std::latch all_{1};
};

}  // namespace perf
