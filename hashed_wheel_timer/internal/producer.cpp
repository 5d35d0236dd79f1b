#include "hashed_wheel_timer/internal/producer.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <unordered_set>
#include <vector>

#include "hashed_wheel_timer/internal/core.h"

namespace hwt::internal {

namespace {

/// Guards who owns which producer: a thread's first use of a timer, its end, and the end of a core; never the hot path.
struct Threads {
  std::mutex mutex;
  std::unordered_set<std::uint64_t> live_cores;
  std::uint64_t last_id = 0;
};

Threads& threads() {
  // Never destroyed: threads may end after static destructors have run.
  static Threads& instance = *new Threads;
  return instance;
}

/// The producers that this thread holds.
class HeldProducers {
 public:
  struct Held {
    std::uint64_t core_id;
    Core* core;
    Producer* producer;
  };

  ~HeldProducers();

  Producer* find(std::uint64_t core_id) const noexcept {
    for (const Held& held : held_) {
      if (held.core_id == core_id) return held.producer;
    }
    return nullptr;
  }

  /// Under the lock of threads.
  Producer* take(Core& core) noexcept {
    std::erase_if(held_, [](const Held& held) { return !threads().live_cores.contains(held.core_id); });
    try {
      held_.reserve(held_.size() + 1);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    Producer* const producer = core.producers().take(core);
    if (producer != nullptr) held_.push_back({core.id(), &core, producer});
    return producer;
  }

 private:
  std::vector<Held> held_;
};

// Without a destructor, so that it can be asked while and after the thread's other variables are destroyed.
constinit thread_local bool thread_is_ending = false;
thread_local HeldProducers held_producers;

HeldProducers::~HeldProducers() {
  thread_is_ending = true;
  thread_cache::latest = {};
  const std::lock_guard lock(threads().mutex);
  for (const Held& held : held_) {
    if (threads().live_cores.contains(held.core_id)) held.core->producers().give_back(held.producer);
  }
}

}  // namespace

constinit thread_local thread_cache::Entry thread_cache::latest = {};

Producer* thread_cache::find_held(std::uint64_t core_id) noexcept {
  // Not after the thread's variables are gone.
  Producer* const held = thread_is_ending ? nullptr : held_producers.find(core_id);
  if (held != nullptr) latest = {core_id, held};
  return held;
}

std::uint64_t announce_core() {
  const std::lock_guard lock(threads().mutex);
  threads().live_cores.insert(++threads().last_id);
  return threads().last_id;
}

void retire_core(std::uint64_t id) noexcept {
  const std::lock_guard lock(threads().mutex);
  threads().live_cores.erase(id);
}

ProducerSet::~ProducerSet() {
  for (Producer* producer = all_.load(std::memory_order_relaxed); producer != nullptr;) {
    delete std::exchange(producer, producer->next);
  }
}

Producer* ProducerSet::take(Core& core) noexcept {
  if (free_ != nullptr) return std::exchange(free_, free_->next_free);
  auto* const producer = new (std::nothrow) Producer(core, pending_);
  if (producer == nullptr) return nullptr;
  if (!producer->pending.valid()) {
    delete producer;
    return nullptr;
  }
  producer->next = all_.load(std::memory_order_relaxed);
  all_.store(producer, std::memory_order_release);
  return producer;
}

void ProducerSet::give_back(Producer* producer) noexcept { producer->next_free = std::exchange(free_, producer); }

ProducerLease::ProducerLease(Core& core) noexcept : core_(core) {
  if (thread_is_ending) {
    const std::lock_guard lock(threads().mutex);
    producer_ = core_.producers().take(core_);
    borrowed_ = producer_ != nullptr;
    return;
  }
  producer_ = thread_cache::find_held(core_.id());
  if (producer_ != nullptr) return;
  const std::lock_guard lock(threads().mutex);
  producer_ = held_producers.take(core_);
  if (producer_ != nullptr) thread_cache::latest = {core_.id(), producer_};
}

void ProducerLease::return_borrowed() noexcept {
  const std::lock_guard lock(threads().mutex);
  core_.producers().give_back(producer_);
}

}  // namespace hwt::internal
