// SPDX-License-Identifier: Apache-2.0
#pragma once

// The member functions of KeyedTimer. They have a file of their own, so that keyed_timer.h shows the interface.

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

#include "hashed_wheel_timer/keyed_timer.h"

namespace hwt {

/// The part of a KeyedTimer that its timeouts refer to. It outlives the KeyedTimer while a task of a timeout exists. A
/// task refers to its entry too, so it claims its value without the table and without a lock: see KeyedRecord.
///
/// State, cell, handle and task refer to each other in a cycle. Erasing the cell breaks it. The destructor of the
/// KeyedTimer erases all cells.
template <class K, class V, class Hash, class Equal>
class KeyedTimer<K, V, Hash, Equal>::State final : public detail::KeyedExpiry {
 public:
  State(const Timer& timer, std::function<void(const K&, V&)> its_on_expire)
      : KeyedExpiry(timer), on_expire(std::move(its_on_expire)) {
    if (!on_expire) detail::refuse_empty_on_expire();
  }
  ~State() override {
    for (Shard& shard : shards) shard.tidy();
  }

  void expire(detail::KeyedRecord& record, std::uint32_t arming) override;
  void free(detail::KeyedRecord& record) noexcept override { delete &static_cast<Entry&>(record); }

  std::function<void(const K&, V&)> on_expire;
  detail::RunningExpiries running;
  bool abandoned = false;  // on_expire destroyed the KeyedTimer; used only by that thread
  std::array<Shard, kShards> shards;

 private:
  class Running;
  class Expired;
};

/// Holds the lock of a shard. Once it has unlocked, makes the calls that were held back, and removes the cells that
/// expiries left behind.
template <class K, class V, class Hash, class Equal>
class KeyedTimer<K, V, Hash, Equal>::Lock {
 public:
  explicit Lock(Shard& shard, detail::HeldCalls* calls = nullptr) : shard_(shard), calls_(calls) { shard.mutex.lock(); }
  ~Lock() {
    shard_.mutex.unlock();
    if (calls_ != nullptr) calls_->make();
    if (!shard_.leftovers.empty()) [[unlikely]]
      shard_.tidy();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Shard& shard_;
  detail::HeldCalls* const calls_;
};

/// The cells taken out of all shards. The destructor destroys the values that are still in them.
template <class K, class V, class Hash, class Equal>
struct KeyedTimer<K, V, Hash, Equal>::Taken {
  Taken() = default;
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  ~Taken() {
    for_each([](Cell& cell) { cell.entry->take(); });
  }

  template <class F>
  void for_each(F f) {
    for (Table& table : tables) table.for_each(f);
  }

  /// Moves the cells of the shard here. Called with the shard's lock held.
  void take(Shard& shard, Table& table) noexcept {
    shard.add(-static_cast<std::ptrdiff_t>(shard.table.size()));
    shard.table.swap(table);
  }

  /// Claims each value and cancels its timeout. Drops the entries whose values an expiry has claimed first.
  void end(std::array<Shard, kShards>& shards) noexcept {
    for (std::size_t i = 0; i < kShards; ++i) {
      tables[i].for_each([&shard = shards[i]](Cell& cell) {
        if (cell.entry->end()) {
          cell.timeout.cancel();
        } else {
          cell.entry.reset();
          shard.add(1);  // take() and the expiry have both subtracted it
        }
      });
    }
  }

  Tables tables;
};

template <class K, class V, class Hash, class Equal>
KeyedTimer<K, V, Hash, Equal>::KeyedTimer(Timer& timer, std::function<void(const K&, V&)> on_expire)
    : timer_(timer), state_(new State(timer, std::move(on_expire))), sleeper_(state_->used.sleeper()) {}

template <class K, class V, class Hash, class Equal>
KeyedTimer<K, V, Hash, Equal>::~KeyedTimer() {
  if (state_->used.in_forked_child()) return;  // its locks and lists may be half changed, so it releases nothing
  {
    Taken taken;
    for (std::size_t i = 0; i < kShards; ++i) {
      const Lock lock(state_->shards[i]);
      state_->shards[i].stopped = true;
      taken.take(state_->shards[i], taken.tables[i]);
    }
    taken.end(state_->shards);
  }
  // All values have ended, so no further expiry gets one. If this thread is inside on_expire, that call releases the
  // function at its end.
  if (state_->running.wait_for_others()) {
    for (Shard& shard : state_->shards) shard.tidy();
    state_->on_expire = nullptr;
  } else {
    state_->abandoned = true;
  }
  state_->drop_reference();
}

template <class K, class V, class Hash, class Equal>
KeyedResult KeyedTimer<K, V, Hash, Equal>::set(K key, V value, When when) {
  when = detail::number("KeyedTimer: delay", when);
  const std::uint32_t hash = hash_of(key);
  Shard& shard = shard_of(hash);
  // Declared before the lock, so that an old or refused value is destroyed after the lock was released.
  OwnedEntry fresh(new Entry(std::move(key), std::move(value), hash));
  OwnedEntry old;
  detail::HeldCalls calls(sleeper_);
  const Lock lock(shard, &calls);
  if (shard.stopped) return KeyedResult::Stopped;
  if (Cell* const cell = shard.find(hash, fresh->key, equal_)) {
    // Keeps the present timeout, and so its place under max_pending_timeouts.
    const KeyedResult moved = detail::reschedule(cell->timeout, when) ? KeyedResult::Moved : arm_again(*cell, when);
    if (moved == KeyedResult::Moved) {
      old = cell->entry->exchange(std::move(fresh));
      if (old != nullptr) return KeyedResult::Replaced;
      fresh = cell->entry->take();  // an expiry has taken the old value, at the new deadline: adds the new one again
    } else if (moved != KeyedResult::NotFound) {
      return moved;
    }
  }
  return add(shard, fresh, when);
}

template <class K, class V, class Hash, class Equal>
KeyedResult KeyedTimer<K, V, Hash, Equal>::add(Shard& shard, OwnedEntry& fresh, When when) {
  Entry* const entry = fresh.get();
  const std::uint32_t hash = entry->hash;
  shard.table.make_room(hash);
  entry->add_references(2);  // of the cell and of the task
  typename Entry::Reference reference(entry);
  Timeout timeout;
  // Counts the value before its timeout is armed, because that may expire at once. `counted` takes the count back if
  // the timer refuses the timeout.
  shard.add(1);
  const auto uncount = [](Shard* counting) { counting->add(-1); };
  std::unique_ptr<Shard, decltype(uncount)> counted(&shard, uncount);
  const detail::Result armed = detail::arm(timer_, *state_, *entry, 0, when, timeout);
  if (armed != detail::Result::Ok) return refusal(armed);
  counted.release();
  fresh.release();  // the thread that claims the value destroys it, and may have done so already
  shard.table.insert({std::move(timeout), std::move(reference), hash});
  return KeyedResult::Added;
}

template <class K, class V, class Hash, class Equal>
KeyedResult KeyedTimer<K, V, Hash, Equal>::move(const K& key, When when) {
  when = detail::number("KeyedTimer: delay", when);
  const std::uint32_t hash = hash_of(key);
  Shard& shard = shard_of(hash);
  detail::HeldCalls calls(sleeper_);
  const Lock lock(shard, &calls);
  if (shard.stopped) return KeyedResult::Stopped;
  Cell* const cell = shard.find(hash, key, equal_);
  if (cell == nullptr) return KeyedResult::NotFound;
  return detail::reschedule(cell->timeout, when) ? KeyedResult::Moved : arm_again(*cell, when);
}

/// Arms a new timeout for a value whose timeout cannot be moved: its task is about to run, an executor dropped it, or
/// the timer was stopped. The old task then cannot claim the value. Returns NotFound if it has claimed the value
/// already.
template <class K, class V, class Hash, class Equal>
KeyedResult KeyedTimer<K, V, Hash, Equal>::arm_again(Cell& cell, When when) {
  Entry& entry = *cell.entry;
  const std::uint32_t arming = entry.next_arming();
  entry.add_references(1);
  Timeout timeout;
  const detail::Result armed = detail::arm(timer_, *state_, entry, arming, when, timeout);
  if (armed != detail::Result::Ok) return refusal(armed);
  if (!entry.rearm(arming)) {
    timeout.cancel();
    return KeyedResult::NotFound;
  }
  cell.timeout = std::move(timeout);
  return KeyedResult::Moved;
}

template <class K, class V, class Hash, class Equal>
std::optional<V> KeyedTimer<K, V, Hash, Equal>::remove(const K& key) {
  const std::uint32_t hash = hash_of(key);
  Shard& shard = shard_of(hash);
  OwnedEntry owned;
  Cell taken;
  {
    const Lock lock(shard);
    Cell* const cell = shard.find(hash, key, equal_);
    if (cell == nullptr || !cell->entry->end()) return std::nullopt;
    owned = cell->entry->take();
    taken = shard.table.erase(cell);
    shard.add(-1);
  }
  taken.timeout.cancel();
  return std::optional<V>(std::move(owned->value));
}

template <class K, class V, class Hash, class Equal>
bool KeyedTimer<K, V, Hash, Equal>::contains(const K& key) const {
  const std::uint32_t hash = hash_of(key);
  Shard& shard = shard_of(hash);
  const Lock lock(shard);
  return shard.find(hash, key, equal_) != nullptr;
}

template <class K, class V, class Hash, class Equal>
std::optional<std::chrono::nanoseconds> KeyedTimer<K, V, Hash, Equal>::remaining(const K& key) const {
  const std::uint32_t hash = hash_of(key);
  Shard& shard = shard_of(hash);
  std::chrono::steady_clock::time_point deadline;
  {
    const Lock lock(shard);
    const Cell* const cell = shard.find(hash, key, equal_);
    if (cell == nullptr) return std::nullopt;
    deadline = cell->timeout.deadline();
  }
  return detail::time_until(deadline, timer_.now());
}

template <class K, class V, class Hash, class Equal>
std::size_t KeyedTimer<K, V, Hash, Equal>::size() const noexcept {
  std::ptrdiff_t sum = 0;
  for (const Shard& shard : state_->shards) {
    sum += std::max<std::ptrdiff_t>(shard.size.load(std::memory_order_relaxed), 0);
  }
  return static_cast<std::size_t>(sum);
}

template <class K, class V, class Hash, class Equal>
std::vector<std::pair<K, V>> KeyedTimer<K, V, Hash, Equal>::take_all(bool for_good) {
  std::vector<Item> items;
  if (state_->used.in_forked_child()) return items;
  std::array<Shard, kShards>& shards = state_->shards;
  Taken taken;
  {
    // Locks all shards at once, so that the vector gets memory for all values before the first is taken.
    std::array<std::unique_lock<std::mutex>, kShards> locks;
    std::size_t count = 0;
    for (std::size_t i = 0; i < kShards; ++i) {
      locks[i] = std::unique_lock(shards[i].mutex);
      count += shards[i].table.size();
    }
    items.reserve(count);
    for (std::size_t i = 0; i < kShards; ++i) {
      taken.take(shards[i], taken.tables[i]);
      if (for_good) shards[i].stopped = true;
    }
  }
  taken.end(shards);  // claims all values before a move constructor can throw
  taken.for_each([&items](Cell& cell) {
    const OwnedEntry owned = cell.entry->take();
    items.emplace_back(std::move(owned->key), std::move(owned->value));
  });
  for (Shard& shard : shards) shard.tidy();
  return items;
}

/// A call of expire(), which may call on_expire.
template <class K, class V, class Hash, class Equal>
class KeyedTimer<K, V, Hash, Equal>::State::Running {
 public:
  explicit Running(State& state) noexcept : state_(state), scope_(state.running) {}
  // Releases on_expire if this call has destroyed the KeyedTimer, unless the function still runs in a call around it.
  ~Running() {
    if (has_value && state_.abandoned && scope_.outermost()) state_.on_expire = nullptr;
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  // A call without a value may come even after the end of the KeyedTimer. It touches neither on_expire nor `abandoned`.
  bool has_value = false;

 private:
  State& state_;
  const detail::RunningExpiries::Scope scope_;
};

/// A value that an expiry has claimed. The worker must not wait for the lock, because the thread that holds it may have
/// been preempted. So the cell stays in the table until tidy() gets the lock.
template <class K, class V, class Hash, class Equal>
class KeyedTimer<K, V, Hash, Equal>::State::Expired {
 public:
  Expired(Shard& shard, Entry& entry) noexcept : shard_(shard), entry_(entry), owned_(entry.take()) { shard.add(-1); }
  ~Expired() {
    shard_.leftovers.push(entry_, std::move(owned_));
    shard_.tidy();
  }
  Expired(const Expired&) = delete;
  Expired& operator=(const Expired&) = delete;

  Entry* operator->() const noexcept { return owned_.get(); }

 private:
  Shard& shard_;
  Entry& entry_;
  OwnedEntry owned_;
};

template <class K, class V, class Hash, class Equal>
void KeyedTimer<K, V, Hash, Equal>::State::expire(detail::KeyedRecord& record, std::uint32_t arming) {
  // Counts this call before the claim. So the destructor waits for this call, unless it has claimed the value first.
  Running call(*this);
  Entry& entry = static_cast<Entry&>(record);
  if (!entry.end(arming)) return;  // the value was armed again, or has ended
  call.has_value = true;
  const Expired expired(shards[shard_number(entry.hash)], entry);
  on_expire(expired->key, expired->value);
}

template <class K, class V, class Hash, class Equal>
auto KeyedTimer<K, V, Hash, Equal>::Shard::find(std::uint32_t hash, const K& key, const Equal& equal) const -> Cell* {
  return table.find(hash, [&](const Cell& cell) {
    const Entry* const holder = cell.entry->holder();
    return holder != nullptr && equal(holder->key, key);
  });
}

template <class K, class V, class Hash, class Equal>
auto KeyedTimer<K, V, Hash, Equal>::Shard::find(const Entry& entry) const noexcept -> Cell* {
  return table.find(entry.hash, [&entry](const Cell& cell) { return cell.entry.get() == &entry; });
}

/// Erases the cells that expiries left behind. A thread that held the lock unlocks it, then reads `leftovers`. An
/// expiry pushes its entry, then tries the lock. One of the two finds the entry, unless a processor moves the load of
/// one before its store. Then key and memory stay until the next call or expiry in the shard.
template <class K, class V, class Hash, class Equal>
void KeyedTimer<K, V, Hash, Equal>::Shard::tidy() noexcept {
  while (!leftovers.empty() && mutex.try_lock()) {
    Entry* const entry = leftovers.take_one();
    Cell* const cell = entry == nullptr ? nullptr : find(detail::KeyedLeftovers<Entry>::record_of(*entry));
    const Cell erased = cell == nullptr ? Cell() : table.erase(cell);
    mutex.unlock();  // first, because destroying key and handle may call the user's code
    if (entry != nullptr) detail::KeyedLeftovers<Entry>::free(*entry);
  }
}

}  // namespace hwt
