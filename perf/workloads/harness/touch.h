#pragma once

#include <cstdint>

#include "harness/ring.h"
#include "harness/splitmix64.h"

namespace perf {

/// Timeouts of idle connections: each sign of life puts one off.
template <class Timer>
class alignas(kCacheLine) TouchRing {
 public:
  TouchRing(Timer& timer, Fired& fired, int t, std::int64_t size, std::uint64_t seed)
      : timer_(timer),
        fired_(fired),
        slots_(timer.make_slots(static_cast<std::size_t>(size))),
        before_first_id_(first_id(t)),
        random_(seed + static_cast<std::uint64_t>(t)) {}

  void fill(std::int64_t n) {
    for (; n > 0; --n, ++filled_) timer_.schedule(slots_[filled_], fired_, id_of(filled_), kRingDelay);
  }

  void run(std::int64_t n) {
    for (; n > 0; --n) {
      const std::size_t at = random_.next() % slots_.size();
      timer_.put_off(slots_[at], fired_, id_of(at), kRingDelay);
    }
  }

  void drain(std::int64_t n) {
    for (; n > 0; --n, ++drained_) {
      if (timer_.cancel(slots_[drained_])) cancelled_.add(id_of(drained_));
    }
  }

  /// A timeout that has been put off is the same one still.
  std::int64_t scheduled() const { return static_cast<std::int64_t>(filled_); }
  const Cancelled& cancelled() const { return cancelled_; }

 private:
  std::uint64_t id_of(std::size_t at) const { return before_first_id_ + 1 + at; }

  Timer& timer_;
  Fired& fired_;
  typename Timer::Slots slots_;
  std::uint64_t before_first_id_;
  SplitMix64 random_;
  std::size_t filled_ = 0;
  std::size_t drained_ = 0;
  Cancelled cancelled_;
};

template <class Timer>
OperationFigures measure_touch(const Options& options) {
  return measure_rings<Timer, TouchRing<Timer>>(
      options, [](const Options& o, int t) { return share_of(o.pending, t, o.threads); });
}

}  // namespace perf
