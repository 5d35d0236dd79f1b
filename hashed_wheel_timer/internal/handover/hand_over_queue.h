// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>

// Distributions and build systems put it in different places. In quotes, because Bazel finds it only so.
#if __has_include("concurrentqueue.h")
#include "concurrentqueue.h"
#elif __has_include(<moodycamel/concurrentqueue.h>)
#include <moodycamel/concurrentqueue.h>
#elif __has_include(<concurrentqueue/moodycamel/concurrentqueue.h>)
#include <concurrentqueue/moodycamel/concurrentqueue.h>
#else
#include <concurrentqueue/concurrentqueue.h>
#endif

#include "hashed_wheel_timer/internal/memory/slab.h"
#include "hashed_wheel_timer/internal/platform/sanitizers.h"

namespace hwt::internal {

struct QueueTraits : moodycamel::ConcurrentQueueDefaultTraits {
  static constexpr std::size_t BLOCK_SIZE = 64;                          // most producers have few elements at a time
  static constexpr std::size_t EXPLICIT_INITIAL_INDEX_SIZE = 2;          // blocks; most producers never enqueue one
  static constexpr std::size_t INITIAL_IMPLICIT_PRODUCER_HASH_SIZE = 0;  // none comes without a token
  // Through operator new, so that programs that replace it see all memory of the library.
  static void* malloc(std::size_t size) { return ::operator new(size, std::nothrow); }
  static void free(void* pointer) { ::operator delete(pointer); }
};

/// Entries of one producer on their way to the worker, first in, first out. One thread at a time enqueues, one thread
/// at a time dequeues. Each producer has a queue of its own. In a common queue, getting a token and dequeuing would
/// walk over the tokens of all producers.
///
/// Its release and acquire also order Node::word: the worker's first look at the word finds the value of publish(), or
/// a later one. Without that order it might find the word of the node's former life, and skip a timeout.
/// ThreadSanitizer would misunderstand the fences inside; it sees the acquire and release of Node::word instead, which
/// order all the rest.
class HandOverQueue {
 public:
  using Queue = moodycamel::ConcurrentQueue<NodeName, QueueTraits>;

  HandOverQueue() : queue_(0), token_(queue_) {}

  /// Returns false if the constructor had no memory.
  bool valid() const noexcept { return token_.valid(); }

  /// Enqueues an entry. Returns false without memory.
  bool enqueue(NodeName entry) noexcept {
    const UnwatchedByThreadSanitizer moodycamel_uses_fences;
    return queue_.enqueue(token_, entry);
  }
  /// Dequeues entries, at most `max`, the oldest first. Returns their number, which is 0 if the caller sees none. One
  /// thread at a time: the one that has the lock of the place.
  std::size_t dequeue(NodeName* entries, std::size_t max) noexcept {
    const UnwatchedByThreadSanitizer moodycamel_uses_fences;
    return queue_.try_dequeue_bulk_from_producer(token_, entries, max);
  }
  /// Returns at least the number of entries that the caller knows to be enqueued, less those dequeued since. Any
  /// thread.
  std::size_t size() const noexcept { return queue_.size_approx(); }

 private:
  Queue queue_;
  moodycamel::ProducerToken token_;
};

}  // namespace hwt::internal
