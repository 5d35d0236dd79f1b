#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "perf/workloads/rings.h"

namespace hwt::perf {

/// Passes batches of timeouts from one thread to another. A waiting thread sleeps, because spinning would count as CPU
/// time.
template <class Batch>
class BatchQueue {
 public:
  void put(Batch* batch) {
    {
      const std::lock_guard lock(mutex_);
      batches_.push_back(batch);
    }
    not_empty_.notify_one();
  }

  Batch* take() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [this] { return !batches_.empty(); });
    Batch* batch = batches_.front();
    batches_.pop_front();
    return batch;
  }

 private:
  std::mutex mutex_;
  std::condition_variable not_empty_;
  std::deque<Batch*> batches_;
};

/// An RPC client: one thread schedules, and the thread that reads the answers keeps the timeouts in its ring and
/// cancels them. A fixed number of batches goes round between the two.
template <class Timer>
class alignas(kCacheLine) Pair {
 public:
  Pair(Timer& timer, Fired& fired, Ring<Timer>& ring, int t)
      : timer_(timer), fired_(fired), ring_(ring), id_(first_id(t)) {
    for (Batch& batch : batches_) {
      batch.slots = timer.make_slots(kSlice);
      empty_.put(&batch);
    }
  }

  void schedule(std::int64_t n) {
    while (n > 0) {
      Batch* batch = empty_.take();
      batch->used = static_cast<std::size_t>(std::min(n, kSlice));
      for (std::size_t i = 0; i < batch->used; ++i) timer_.schedule(batch->slots[i], fired_, ++id_, kLongDelay);
      n -= static_cast<std::int64_t>(batch->used);
      full_.put(batch);
    }
  }

  void cancel(std::int64_t n) {
    while (n > 0) {
      Batch* batch = full_.take();
      for (std::size_t i = 0; i < batch->used; ++i) ring_.receive(batch->slots[i]);
      n -= static_cast<std::int64_t>(batch->used);
      empty_.put(batch);
    }
  }

 private:
  struct Batch {
    typename Timer::Slots slots;
    std::size_t used = 0;
  };

  Timer& timer_;
  Fired& fired_;
  Ring<Timer>& ring_;
  std::uint64_t id_;
  std::vector<Batch> batches_ = std::vector<Batch>(8);
  BatchQueue<Batch> full_;
  BatchQueue<Batch> empty_;
};

template <class Timer>
Json measure_handoff(const Options& options) {
  const int n = options.threads;
  Fired fired;
  Timer timer(options.tick());
  std::vector<std::unique_ptr<Ring<Timer>>> rings;
  std::vector<std::unique_ptr<Pair<Timer>>> pairs;
  for (int t = 0; t < n; ++t) {
    rings.push_back(std::make_unique<Ring<Timer>>(timer, fired, t, options.pending, options.seed));
    pairs.push_back(std::make_unique<Pair<Timer>>(timer, fired, *rings.back(), t));
  }
  Crew crew(2 * n);
  const auto hand_over = [&](auto share) {
    crew.run([&, share](int t) {
      Pair<Timer>& pair = *pairs[static_cast<std::size_t>(t % n)];
      t < n ? pair.schedule(share(t)) : pair.cancel(share(t % n));
    });
  };

  hand_over([&](int) { return options.pending; });
  timer.take_over();
  Json figures = measured(options, [&] { hand_over([&](int t) { return options.share(options.count, t); }); });
  crew.run([&](int t) {
    if (t >= n) rings[static_cast<std::size_t>(t - n)]->drain(options.pending);
  });
  timer.stop();
  add_counts(figures, fired, rings);
  return figures;
}

}  // namespace hwt::perf
