#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "perf/random.h"
#include "perf/workloads/fired.h"
#include "perf/workloads/producers.h"

namespace hwt::perf {

/// The delay of timeouts that are cancelled or postponed before they are due.
inline constexpr std::chrono::seconds kLongDelay{600};

/// The pending timeouts of one thread in churn, handoff and touch.
template <class Timer>
class alignas(kCacheLine) Ring {
 public:
  Ring(Timer& timer, Fired& fired, int t, std::int64_t size, std::uint64_t seed)
      : timer_(timer),
        fired_(fired),
        slots_(timer.make_slots(static_cast<std::size_t>(size))),
        before_first_id_(first_id(t)),
        last_id_(before_first_id_),
        random_(seed + static_cast<std::uint64_t>(t)) {}

  void fill(std::int64_t n) {
    for (; n > 0; --n) schedule();
  }

  /// The request path: cancels the oldest timeout and schedules a new one.
  void churn(std::int64_t n) {
    for (; n > 0; --n) {
      cancel(oldest_);
      schedule();
    }
  }

  /// The request path with a timeout that another thread has scheduled. Cancels nothing if the slot is free.
  template <class Slot>
  void receive(Slot& given) {
    cancel(oldest_);
    slots_[oldest_] = std::move(given);
    ++last_id_;
    advance();
  }

  /// A keep-alive: postpones one timeout at random.
  void touch(std::int64_t n) {
    for (; n > 0; --n) {
      const std::size_t at = random_.next() % slots_.size();
      timer_.put_off(slots_[at], fired_, id_at(at), kLongDelay);
    }
  }

  void drain(std::int64_t n) {
    for (; n > 0; --n) cancel(drained_++);
  }

  std::int64_t scheduled() const { return static_cast<std::int64_t>(last_id_ - before_first_id_); }
  std::int64_t cancelled() const { return cancelled_; }
  std::uint64_t cancelled_sum() const { return cancelled_sum_; }

 private:
  void schedule() {
    timer_.schedule(slots_[oldest_], fired_, ++last_id_, kLongDelay);
    advance();
  }

  void advance() { oldest_ = oldest_ + 1 == slots_.size() ? 0 : oldest_ + 1; }

  void cancel(std::size_t at) {
    if (!timer_.cancel(slots_[at])) return;
    ++cancelled_;
    cancelled_sum_ += id_at(at);
  }

  /// In a full ring the ids ascend by one from the oldest on.
  std::uint64_t id_at(std::size_t at) const { return last_id_ + 1 + at - oldest_ - (at < oldest_ ? 0 : slots_.size()); }

  Timer& timer_;
  Fired& fired_;
  typename Timer::Slots slots_;
  std::size_t oldest_ = 0;
  std::size_t drained_ = 0;
  std::uint64_t before_first_id_;
  std::uint64_t last_id_;
  Random random_;
  std::int64_t cancelled_ = 0;
  std::uint64_t cancelled_sum_ = 0;
};

/// Call it after the timer has stopped.
template <class Timer>
void add_counts(Json& figures, const Fired& fired, const std::vector<std::unique_ptr<Ring<Timer>>>& rings) {
  std::int64_t scheduled = 0;
  std::int64_t cancelled = 0;
  std::uint64_t cancelled_sum = 0;
  for (const auto& ring : rings) {
    scheduled += ring->scheduled();
    cancelled += ring->cancelled();
    cancelled_sum += ring->cancelled_sum();
  }
  fired.add_counts(figures, scheduled, cancelled, cancelled_sum);
}

/// A ring of size(t) for each thread t. Fills the rings, measures the work, and drains them.
template <class Timer, class Size>
Json measure_rings(const Options& options, Size size, void (Ring<Timer>::*work)(std::int64_t)) {
  Fired fired;
  Timer timer(options.tick());
  std::vector<std::unique_ptr<Ring<Timer>>> rings;
  for (int t = 0; t < options.threads; ++t) {
    rings.push_back(std::make_unique<Ring<Timer>>(timer, fired, t, size(t), options.seed));
  }
  Producers<Timer> producers(timer, options.threads);
  const auto each = [&](auto share, void (Ring<Timer>::*step)(std::int64_t)) {
    producers.run(share, [&rings, step](int t, std::int64_t n) { ((*rings[static_cast<std::size_t>(t)]).*step)(n); });
  };

  each(size, &Ring<Timer>::fill);
  timer.take_over();
  Json figures = measured(options, [&] { each([&](int t) { return options.share(options.count, t); }, work); });
  each(size, &Ring<Timer>::drain);
  timer.stop();

  add_counts(figures, fired, rings);
  return figures;
}

template <class Timer>
Json measure_churn(const Options& options) {
  return measure_rings<Timer>(options, [&](int) { return options.pending; }, &Ring<Timer>::churn);
}

template <class Timer>
Json measure_touch(const Options& options) {
  return measure_rings<Timer>(options, [&](int t) { return options.share(options.pending, t); }, &Ring<Timer>::touch);
}

}  // namespace hwt::perf
