#pragma once

#include <cstdint>

#include "harness/ring.h"

namespace perf {

/// The request path: cancels the oldest timeout, schedules a new one.
template <class Timer>
class alignas(kCacheLine) ChurnRing {
 public:
  ChurnRing(Timer& timer, Fired& fired, int t, std::int64_t size, std::uint64_t /*seed*/)
      : timer_(timer),
        fired_(fired),
        slots_(timer.make_slots(static_cast<std::size_t>(size))),
        before_first_id_(first_id(t)),
        last_id_(before_first_id_) {}

  void fill(std::int64_t n) {
    for (; n > 0; --n) {
      schedule();
      advance();
    }
  }

  void run(std::int64_t n) {
    for (; n > 0; --n) {
      cancel(last_id_ + 1 - slots_.size());
      schedule();
      advance();
    }
  }

  void drain(std::int64_t n) {
    for (; n > 0; --n) {
      cancel(last_id_ + 1 - slots_.size() + drained_++);
      advance();
    }
  }

  std::int64_t scheduled() const { return static_cast<std::int64_t>(last_id_ - before_first_id_); }
  const Cancelled& cancelled() const { return cancelled_; }

 private:
  void schedule() { timer_.schedule(slots_[oldest_], fired_, ++last_id_, kRingDelay); }
  void cancel(std::uint64_t id) {
    if (timer_.cancel(slots_[oldest_])) cancelled_.add(id);
  }
  void advance() { oldest_ = oldest_ + 1 == slots_.size() ? 0 : oldest_ + 1; }

  Timer& timer_;
  Fired& fired_;
  typename Timer::Slots slots_;
  std::size_t oldest_ = 0;
  std::uint64_t before_first_id_;
  std::uint64_t last_id_;
  std::uint64_t drained_ = 0;
  Cancelled cancelled_;
};

template <class Timer>
OperationFigures measure_churn(const Options& options) {
  return measure_rings<Timer, ChurnRing<Timer>>(options, [](const Options& o, int) { return o.pending; });
}

}  // namespace perf
