#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

// The places where distributions and build systems put it.
#if __has_include(<concurrentqueue.h>)
#include <concurrentqueue.h>
#elif __has_include(<moodycamel/concurrentqueue.h>)
#include <moodycamel/concurrentqueue.h>
#elif __has_include(<concurrentqueue/moodycamel/concurrentqueue.h>)
#include <concurrentqueue/moodycamel/concurrentqueue.h>
#else
#include <concurrentqueue/concurrentqueue.h>
#endif

#include "hashed_wheel_timer/internal/node.h"
#include "hashed_wheel_timer/internal/thread_sanitizer.h"

namespace hwt::internal {

struct QueueTraits : moodycamel::ConcurrentQueueDefaultTraits {
  static constexpr std::size_t BLOCK_SIZE = 128;  // few producers with many elements each
  // Through operator new, so that programs that replace it see all memory of the library.
  static void* malloc(std::size_t size) { return ::operator new(size, std::nothrow); }
  static void free(void* pointer) { ::operator delete(pointer); }
};

/// Entries on their way to the worker: first in, first out for each producer token, no order between producers.
/// Any thread enqueues, with a token that it has to itself; the worker alone dequeues.
///
/// The queue itself orders nothing for its users: whoever takes a node reads Node::word with acquire first, which pairs
/// with the release that last wrote it. ThreadSanitizer sees that pair; what the queue does inside it would
/// misunderstand.
template <class Entry>
class HandOverQueue {
 public:
  using Queue = moodycamel::ConcurrentQueue<Entry, QueueTraits>;

  /// One producer's place in the queue. Not valid after a lack of memory.
  class Token {
   public:
    explicit Token(HandOverQueue& queue) : token_(queue.queue_) {}
    bool valid() const noexcept { return token_.valid(); }

   private:
    friend class HandOverQueue;
    moodycamel::ProducerToken token_;
  };

  HandOverQueue() : queue_(QueueTraits::BLOCK_SIZE), consumer_(queue_) {}

  /// False: no memory.
  /// All in one function, to which the entry comes in registers: the queue's own would read in one piece what was just
  /// written in several, for which a processor has to wait (3 ns of a schedule and cancel).
  [[gnu::noinline, gnu::flatten]] bool enqueue(Token& token, Entry entry) noexcept {
    const UnwatchedByThreadSanitizer moodycamel_uses_fences;
    return queue_.enqueue(token.token_, entry);
  }
  std::size_t dequeue(Entry* entries, std::size_t max) noexcept {
    const UnwatchedByThreadSanitizer moodycamel_uses_fences;
    return queue_.try_dequeue_bulk(consumer_, entries, max);
  }
  /// At least what was enqueued before, as far as the caller can know of it, and not dequeued since. Any thread.
  std::size_t size() const noexcept { return queue_.size_approx(); }

 private:
  Queue queue_;
  moodycamel::ConsumerToken consumer_;
};

/// What the pending queue carries.
struct Arriving {
  Node* node;
  // Of a new timeout. It may have been withdrawn, and the node be another timeout by now: see Node::arrive().
  std::uint32_t generation;
  // Not a new timeout: in the wheel, and due earlier than its place there. By now the node may be anything else.
  bool moved = false;
};
using PendingQueue = HandOverQueue<Arriving>;
using NodeQueue = HandOverQueue<Node*>;

/// A stack of nodes for when the cancelled queue has no memory: cancel() must not fail.
class NodeStack {
 public:
  void push(Node* node) noexcept {
    node->next = top_.load(std::memory_order_relaxed);
    // release: pairs with take_all(), which follows the links.
    while (!top_.compare_exchange_weak(node->next, node, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  Node* take_all() noexcept {
    if (empty()) return nullptr;
    return top_.exchange(nullptr, std::memory_order_acquire);
  }
  bool empty() const noexcept { return top_.load(std::memory_order_relaxed) == nullptr; }

 private:
  std::atomic<Node*> top_{nullptr};
};

}  // namespace hwt::internal
