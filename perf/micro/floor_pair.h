#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/internal/handover/hand_over_queue.h"
#include "hashed_wheel_timer/internal/time/clock.h"
#include "hashed_wheel_timer/internal/wheel/wheel_item.h"

namespace hwt::perf {

/// The least that schedule and cancel can consist of if each timeout goes through a queue to another thread. A pair
/// reads steady_clock, unless the deadline is given. It fills a cache line, enqueues one entry, does one
/// compare-exchange, and returns the line in a batch. The timer can take less time, because it reads the cycle counter.
/// Nothing ever expires. One thread calls pair(), one calls drain().
class FloorPair {
 public:
  static constexpr std::size_t kRing = 1000;  // scheduled, not cancelled yet
  static constexpr std::size_t kBatch = 256;

  FloorPair() : nodes_(kNodes), ring_(kRing, nullptr), producer_(queue_), consumer_(queue_) {
    for (Node& node : nodes_) node.next = std::exchange(free_, &node);
  }

  /// Schedules one and cancels the one kRing before it.
  void pair() noexcept { pair_at(internal::steady_now() + 5'000'000'000); }
  /// Does not read the clock.
  void pair_at(std::int64_t deadline) noexcept {
    Node* const node = take();
    node->deadline = deadline;
    node->task[0] = 1;
    node->task[1] = 2;
    node->task[2] = 3;
    node->word.store(kQueued, std::memory_order_release);
    queue_.enqueue(producer_, node);
    if (Node* const oldest = std::exchange(ring_[next_], node); oldest != nullptr) {
      std::uint32_t seen = kQueued;
      oldest->word.compare_exchange_strong(seen, kCancelled, std::memory_order_acq_rel);
    }
    next_ = next_ + 1 == kRing ? 0 : next_ + 1;
  }

  /// Gives kBatch cancelled nodes back to pair(). Returns false if there are fewer.
  bool drain() noexcept {
    // Entries older than kRing have been cancelled.
    if (queue_.size_approx() <= kRing + kBatch) return false;
    Node* batch[kBatch];
    const std::size_t count = queue_.try_dequeue_bulk(consumer_, batch, kBatch);
    if (count == 0) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (batch[i]->word.load(std::memory_order_acquire) != kCancelled) std::abort();
      if (i + 1 < count) batch[i]->next = batch[i + 1];
    }
    Node* const last = batch[count - 1];
    last->next = returned_.load(std::memory_order_relaxed);
    while (!returned_.compare_exchange_weak(last->next, batch[0], std::memory_order_release)) {
    }
    return true;
  }

 private:
  static constexpr std::size_t kNodes = std::size_t{1} << 17;  // more than are in use at a tick of 1 ms
  static constexpr std::uint32_t kQueued = 0;
  static constexpr std::uint32_t kCancelled = 1;

  struct alignas(internal::kCacheLine) Node {
    std::atomic<std::uint32_t> word;
    std::int64_t deadline;
    std::uint64_t task[3];
    Node* next;
  };

  Node* take() noexcept {
    while (free_ == nullptr) {
      if (returned_.load(std::memory_order_relaxed) != nullptr) {
        free_ = returned_.exchange(nullptr, std::memory_order_acquire);
      }
    }
    return std::exchange(free_, free_->next);
  }

  std::vector<Node> nodes_;
  std::vector<Node*> ring_;
  std::size_t next_ = 0;
  Node* free_ = nullptr;
  moodycamel::ConcurrentQueue<Node*, internal::QueueTraits> queue_;
  moodycamel::ProducerToken producer_;
  moodycamel::ConsumerToken consumer_;
  alignas(internal::kCacheLine) std::atomic<Node*> returned_{nullptr};
};

}  // namespace hwt::perf
