#pragma once

// Values by key, each with a deadline: what a keep-alive for many connections, or a cache, needs of a timer.
//
//   hwt::KeyedTimer<ConnectionId, Connection> idle(timer, [](const ConnectionId& id, Connection& c) { c.close(); });
//   idle.set(id, std::move(connection), 30s);
//   ...
//   idle.move(id, 30s);                                    // at each heartbeat: later deadlines cost least
//   ...
//   if (auto connection = idle.remove(id)) use(*connection);   // empty: it has expired
//
// Guarantees: each value ends exactly once: expired, returned by remove(), drain() or stop(), or replaced. When move()
// has said Moved, the old deadline cannot expire the value any more. Never early by the timer's clock.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/keyed_expiry.h"
#include "hashed_wheel_timer/keyed_table.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt {

/// What became of KeyedTimer::set() and move().
enum class KeyedResult {
  Added,     // the key was not there
  Replaced,  // it was: value and deadline are the new ones
  Moved,     // the deadline is the new one
  NotFound,  // there is no such key
  Stopped,   // by KeyedTimer::stop(), or its timer has been stopped
  Rejected,  // the timer is at its max_pending_timeouts
};

/// Values with a deadline, by key, on one Timer, which must outlive it. Any thread may call any member at any time,
/// from on_expire too, whatever the key; only the destructor must not race other calls (those in a running on_expire
/// excepted). After Stopped, Rejected or an exception nothing has changed: an old value keeps its deadline. If an
/// executor drops a task without a word, its value stays there, overdue, until move(), set() or whoever takes it out.
///
/// Divided into shards by hash, each with a lock. Called with a lock held: Equal, and the timer's thread_factory if the
/// first set() starts the timer; neither may call the KeyedTimer. Nothing else of the user's: Hash, on_expire, and what
/// constructs, moves and destroys keys and values run without.
/// go-zero: TimingWheel.
template <class K, class V, class Hash = std::hash<K>, class Equal = std::equal_to<K>>
class KeyedTimer {
 public:
  /// `on_expire` is called once for each value that expires, where the timer runs its tasks, and may change the value,
  /// which is destroyed afterwards. An exception goes to the timer's error handler. Throws std::invalid_argument for an
  /// empty function, std::bad_alloc.
  KeyedTimer(Timer& timer, std::function<void(const K&, V&)> on_expire);

  /// stop(), and the values are destroyed. Waits for each on_expire that is running, unless called from inside it.
  ~KeyedTimer();

  KeyedTimer(const KeyedTimer&) = delete;
  KeyedTimer& operator=(const KeyedTimer&) = delete;

  /// The value expires after `delay`, or at the next tick when that is zero or less; never in here. Replaces a value
  /// that is there. Returns Added, Replaced, Stopped or Rejected. Throws std::bad_alloc, and what Timer::new_timeout()
  /// throws when the timer cannot be started.
  KeyedResult set(K key, V value, detail::Span delay);

  /// The value expires after `delay` from now, sooner or later than before. Returns Moved, NotFound, Stopped or
  /// Rejected (only when its expiry had begun already, and goes on). Throws std::bad_alloc, for an earlier deadline or
  /// when its expiry had begun.
  KeyedResult move(const K& key, detail::Span delay);

  /// Takes a value out; empty when it has expired or was never there. If a move constructor of K or V throws on the way
  /// to the caller, what was taken out is lost: here the value, in drain() and stop() all of them.
  std::optional<V> remove(const K& key);

  bool contains(const K& key) const;

  /// The time to the deadline, zero when that has passed; empty when there is no such key.
  std::optional<std::chrono::nanoseconds> remaining(const K& key) const;

  /// Of a moment: other threads may be at work.
  std::size_t size() const noexcept;

  /// Takes everything that is there at one moment, and keeps working. In no order. Throws std::bad_alloc, then nothing
  /// has changed.
  std::vector<std::pair<K, V>> drain() { return take_all(false); }

  /// The same, and set() and move() refuse from now on. Does not wait for an on_expire that is running.
  std::vector<std::pair<K, V>> stop() { return take_all(true); }

 private:
  using Item = std::pair<K, V>;
  using Table = detail::KeyedTable<Item>;
  using Cell = typename Table::Cell;

  /// What a running on_expire needs; it outlives a KeyedTimer that is destroyed from inside.
  struct Owner {
    std::function<void(const K&, V&)> on_expire;
    detail::RunningExpiries running;
  };

  /// A part of the keys. Each timeout holds one reference to its shard and no more than that: not its item. So a
  /// timeout that nobody wants any more finds nothing, whenever it comes: after a move, or years after the KeyedTimer,
  /// run by hand by who got it from Timer::stop().
  ///
  /// References go in a circle, shard, cell, handle, task, shard, until the cell is taken out, as all are at the end.
  struct alignas(64) Shard final : detail::KeyedExpiry {
    explicit Shard(std::shared_ptr<Owner> its_owner) noexcept : owner(std::move(its_owner)) {}
    void expire(std::uint32_t hash, const Timeout& timeout) override;
    Cell* find(std::uint32_t hash, const K& key, const Equal& equal) const;
    Cell take(Cell* cell) noexcept;

    mutable std::mutex mutex;

    // Guarded by mutex. It decides the fate of a value: who takes its cell out has it. A timeout may do so only while
    // its own handle is in the cell, so a move or set that puts another handle there makes an expiry lose that has
    // begun but not come here yet.
    Table table;
    bool stopped = false;
    std::shared_ptr<Owner> owner;  // null once the KeyedTimer is gone

    // Written with mutex held, read without.
    std::atomic<std::size_t> size{0};
  };

  // All of them are locked at once in take_all(), and ThreadSanitizer allows a thread no more than 64 locks.
  static constexpr int kShardBits = 5;
  static constexpr std::size_t kShards = std::size_t{1} << kShardBits;

  std::uint32_t hash_of(const K& key) const { return detail::mixed_hash(hash_(key)); }
  const std::shared_ptr<Shard>& shard_of(std::uint32_t hash) const noexcept {
    return shards_[hash >> (32 - kShardBits)];  // the table uses the low bits
  }
  KeyedResult put_off(const std::shared_ptr<Shard>& shard, Cell& cell, std::chrono::nanoseconds delay);
  std::vector<Item> take_all(bool for_good);

  Timer& timer_;
  const Hash hash_{};
  const Equal equal_{};
  std::shared_ptr<Owner> owner_;
  std::array<std::shared_ptr<Shard>, kShards> shards_;
};

template <class K, class V, class Hash, class Equal>
KeyedTimer<K, V, Hash, Equal>::KeyedTimer(Timer& timer, std::function<void(const K&, V&)> on_expire) : timer_(timer) {
  if (!on_expire) detail::refuse_empty_on_expire();
  owner_ = std::make_shared<Owner>();
  owner_->on_expire = std::move(on_expire);
  for (auto& shard : shards_) shard = std::make_shared<Shard>(owner_);
}

template <class K, class V, class Hash, class Equal>
KeyedTimer<K, V, Hash, Equal>::~KeyedTimer() {
  for (const auto& shard : shards_) {
    Table taken;
    {
      const std::lock_guard lock(shard->mutex);
      shard->stopped = true;
      shard->owner.reset();
      shard->table.swap(taken);
    }
    taken.for_each([](Cell& cell) { cell.timeout.cancel(); });
  }
  // No table has anything left, so no other on_expire begins. When the one that called this is done, it releases the
  // function.
  if (owner_->running.wait_for_others()) owner_->on_expire = nullptr;
}

template <class K, class V, class Hash, class Equal>
KeyedResult KeyedTimer<K, V, Hash, Equal>::set(K key, V value, detail::Span delay) {
  const std::uint32_t hash = hash_of(key);
  const std::shared_ptr<Shard>& shard = shard_of(hash);
  // Before the lock is taken, so that what remains in it, the old value or the refused one, goes after it is released.
  auto item = std::make_unique<Item>(std::move(key), std::move(value));
  const std::lock_guard lock(shard->mutex);
  if (shard->stopped) return KeyedResult::Stopped;
  if (Cell* const cell = shard->find(hash, item->first, equal_)) {
    // The timeout that is there stays, and with it its place under max_pending_timeouts.
    const KeyedResult moved = put_off(shard, *cell, delay);
    if (moved != KeyedResult::Moved) return moved;
    cell->item.swap(item);
    return KeyedResult::Replaced;
  }
  shard->table.make_room();
  Timeout timeout;
  const detail::Armed armed = detail::arm(timer_, shard, hash, delay, timeout);
  if (armed != detail::Armed::Yes)
    return armed == detail::Armed::Stopped ? KeyedResult::Stopped : KeyedResult::Rejected;
  shard->table.insert({std::move(timeout), std::move(item), hash});
  shard->size.store(shard->table.size(), std::memory_order_relaxed);
  return KeyedResult::Added;
}

template <class K, class V, class Hash, class Equal>
KeyedResult KeyedTimer<K, V, Hash, Equal>::move(const K& key, detail::Span delay) {
  const std::uint32_t hash = hash_of(key);
  const std::shared_ptr<Shard>& shard = shard_of(hash);
  const std::lock_guard lock(shard->mutex);
  if (shard->stopped) return KeyedResult::Stopped;
  Cell* const cell = shard->find(hash, key, equal_);
  return cell == nullptr ? KeyedResult::NotFound : put_off(shard, *cell, delay);
}

template <class K, class V, class Hash, class Equal>
KeyedResult KeyedTimer<K, V, Hash, Equal>::put_off(const std::shared_ptr<Shard>& shard, Cell& cell,
                                                   std::chrono::nanoseconds delay) {
  if (cell.timeout.reschedule(delay)) return KeyedResult::Moved;
  // Its task is on the way here, or an executor has dropped it, or the timer has been stopped. A new timeout takes
  // over, and the task will not find its own handle.
  Timeout timeout;
  const detail::Armed armed = detail::arm(timer_, shard, cell.hash, delay, timeout);
  if (armed != detail::Armed::Yes)
    return armed == detail::Armed::Stopped ? KeyedResult::Stopped : KeyedResult::Rejected;
  cell.timeout = std::move(timeout);
  return KeyedResult::Moved;
}

template <class K, class V, class Hash, class Equal>
std::optional<V> KeyedTimer<K, V, Hash, Equal>::remove(const K& key) {
  const std::uint32_t hash = hash_of(key);
  Shard& shard = *shard_of(hash);
  Cell taken;
  {
    const std::lock_guard lock(shard.mutex);
    Cell* const cell = shard.find(hash, key, equal_);
    if (cell == nullptr) return std::nullopt;
    taken = shard.take(cell);
  }
  taken.timeout.cancel();
  return std::optional<V>(std::move(taken.item->second));
}

template <class K, class V, class Hash, class Equal>
bool KeyedTimer<K, V, Hash, Equal>::contains(const K& key) const {
  const std::uint32_t hash = hash_of(key);
  const Shard& shard = *shard_of(hash);
  const std::lock_guard lock(shard.mutex);
  return shard.find(hash, key, equal_) != nullptr;
}

template <class K, class V, class Hash, class Equal>
std::optional<std::chrono::nanoseconds> KeyedTimer<K, V, Hash, Equal>::remaining(const K& key) const {
  const std::uint32_t hash = hash_of(key);
  const Shard& shard = *shard_of(hash);
  std::chrono::steady_clock::time_point deadline;
  {
    const std::lock_guard lock(shard.mutex);
    const Cell* const cell = shard.find(hash, key, equal_);
    if (cell == nullptr) return std::nullopt;
    deadline = cell->timeout.deadline();
  }
  return detail::time_until(deadline, timer_.now());
}

template <class K, class V, class Hash, class Equal>
std::size_t KeyedTimer<K, V, Hash, Equal>::size() const noexcept {
  std::size_t sum = 0;
  for (const auto& shard : shards_) sum += shard->size.load(std::memory_order_relaxed);
  return sum;
}

template <class K, class V, class Hash, class Equal>
std::vector<std::pair<K, V>> KeyedTimer<K, V, Hash, Equal>::take_all(bool for_good) {
  std::vector<Item> items;
  std::array<Table, kShards> taken;
  {
    // All shards at once: the vector must have its memory before the first value is taken.
    std::array<std::unique_lock<std::mutex>, kShards> locks;
    std::size_t count = 0;
    for (std::size_t i = 0; i < kShards; ++i) {
      locks[i] = std::unique_lock(shards_[i]->mutex);
      count += shards_[i]->table.size();
    }
    items.reserve(count);
    for (std::size_t i = 0; i < kShards; ++i) {
      shards_[i]->table.swap(taken[i]);
      shards_[i]->size.store(0, std::memory_order_relaxed);
      if (for_good) shards_[i]->stopped = true;
    }
  }
  for (Table& table : taken) {
    table.for_each([](Cell& cell) { cell.timeout.cancel(); });  // all of them before a value can throw
  }
  for (Table& table : taken) {
    table.for_each([&items](Cell& cell) { items.push_back(std::move(*cell.item)); });
  }
  return items;
}

template <class K, class V, class Hash, class Equal>
void KeyedTimer<K, V, Hash, Equal>::Shard::expire(std::uint32_t hash, const Timeout& timeout) {
  std::unique_lock lock(mutex);
  Cell* const cell = table.find(hash, [&timeout](const Cell& it) { return it.timeout == timeout; });
  if (cell == nullptr) return;  // moved, replaced or taken meanwhile
  // Before the lock is released: the destructor waits for this one, or has emptied the table. And left when the value
  // is gone: the destructor of a value may be the one that destroys the KeyedTimer.
  const std::shared_ptr<Owner> its_owner = owner;
  const detail::RunningExpiries::Scope running(its_owner->running);
  const Cell taken = take(cell);
  lock.unlock();
  its_owner->on_expire(taken.item->first, taken.item->second);
}

template <class K, class V, class Hash, class Equal>
auto KeyedTimer<K, V, Hash, Equal>::Shard::find(std::uint32_t hash, const K& key, const Equal& equal) const -> Cell* {
  return table.find(hash, [&](const Cell& cell) { return equal(cell.item->first, key); });
}

template <class K, class V, class Hash, class Equal>
auto KeyedTimer<K, V, Hash, Equal>::Shard::take(Cell* cell) noexcept -> Cell {
  Cell taken = table.erase(cell);
  size.store(table.size(), std::memory_order_relaxed);
  return taken;
}

}  // namespace hwt
