#pragma once

// Replaces moodycamel's queue. It has only the guarantees that the library relies on. One thread at a time enqueues,
// one at a time dequeues; release when an entry is put, acquire when it is taken; the size is relaxed.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

namespace moodycamel {

struct ConcurrentQueueDefaultTraits {};

template <class T, class Traits>
class ConcurrentQueue;

class ProducerToken {
 public:
  template <class T, class Traits>
  explicit ProducerToken(ConcurrentQueue<T, Traits>&) {}
  bool valid() const { return true; }
};

template <class T, class Traits>
class ConcurrentQueue {
 public:
  explicit ConcurrentQueue(std::size_t) {}

  bool enqueue(const ProducerToken&, T entry) {
    const std::size_t at = tail_.load(std::memory_order_relaxed);
    entries_[at] = entry;
    tail_.store(at + 1, std::memory_order_release);
    return true;
  }
  std::size_t try_dequeue_bulk_from_producer(const ProducerToken&, T* entries, std::size_t max) {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    const std::size_t count = std::min(tail_.load(std::memory_order_acquire) - head, max);
    for (std::size_t i = 0; i < count; ++i) entries[i] = entries_[head + i];
    head_.store(head + count, std::memory_order_relaxed);
    return count;
  }
  std::size_t size_approx() const {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    const std::size_t head = head_.load(std::memory_order_relaxed);
    return tail > head ? tail - head : 0;
  }

 private:
  std::array<T, 64> entries_;  // more than any model ever puts
  std::atomic<std::size_t> tail_{0};
  std::atomic<std::size_t> head_{0};
};

}  // namespace moodycamel
