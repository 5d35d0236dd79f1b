// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/detail/held_calls.h"
#include "hashed_wheel_timer/detail/keyed/entry.h"
#include "hashed_wheel_timer/detail/keyed/expiry.h"
#include "hashed_wheel_timer/detail/keyed/table.h"
#include "hashed_wheel_timer/detail/refuse_nan.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt {

/// The result of KeyedTimer::set() and move().
enum class KeyedResult {
  Added,     ///< the key is new
  Replaced,  ///< the key had a value; value and deadline were replaced
  Moved,     ///< the deadline was moved
  NotFound,  ///< the key has no value
  Stopped,   ///< KeyedTimer::stop() was called, or the timer was stopped
  Rejected,  ///< the timer is at its max_pending_timeouts
};

/// Holds values by key, each with a deadline: for keep-alives of many connections, sessions and caches.
///
///   hwt::KeyedTimer<ConnectionId, Connection> idle(timer, [](const ConnectionId& id, Connection& c) { c.close(); });
///   if (idle.set(id, std::move(connection), 30s) == hwt::KeyedResult::Rejected) refuse(id);   // by the timer's limit
///   if (idle.move(id, 30s) != hwt::KeyedResult::Moved) too_late(id);   // at each heartbeat
///   if (auto connection = idle.remove(id)) use(*connection);   // empty: it has expired
///
/// Guarantees: each value ends exactly once. It expires, is returned by remove(), drain() or stop(), is replaced, or is
/// destroyed with the KeyedTimer. After move() returned Moved, the old deadline cannot expire the value. No value
/// expires early, by the timer's clock, except the old value of a set() whose new deadline is earlier. If the thread of
/// this set() is held up until that deadline, the old value may expire then, and the set() adds its own value or is
/// refused. Apart from that, nothing has changed after Stopped, Rejected or an exception, except as remove() states.
/// But set() has taken its key and value by then, and destroys them. Members also throw what Hash, Equal and the move
/// constructors of K and V throw.
/// Threads: any thread may call any member at any time, also in on_expire and for any key. Only the destructor must not
/// race other calls, except those in a running on_expire. Keys are divided into shards by their hash, each with a lock.
/// Equal is called under that lock, and so is the timer's thread_factory if the first set() starts the timer; neither
/// may call the KeyedTimer. Hash, on_expire, the function of on_earlier(), and the construction and destruction of keys
/// and values run without a lock. An expiry waits for no lock. If it finds one held, the key is destroyed later,
/// perhaps by another thread.
/// Fork: in the child, until it has turned or started the timer, the destructor, stop() and drain() return at once,
/// with nothing, and release nothing. It must not call other members, except size(), because a lock may stay locked for
/// ever. Afterwards all members work, if no other thread was in a call at the fork.
/// Not for: outliving its Timer. If an executor drops an expiry, the value stays, overdue, until it is moved, replaced
/// or taken out. The table grows with the keys, and only drain() and stop() free its memory. A key whose
/// value was replaced takes the memory of two values until it ends.
/// Source: go-zero's TimingWheel.
template <class K, class V, class Hash = std::hash<K>, class Equal = std::equal_to<K>>
class KeyedTimer {
  static_assert(std::is_invocable_r_v<std::size_t, const Hash&, const K&>,
                "the key of a KeyedTimer has no hash: specialise std::hash for it, or give KeyedTimer a Hash");
  static_assert(!std::is_same_v<Equal, std::equal_to<K>> || std::equality_comparable<K>,
                "the key of a KeyedTimer has no operator==: define it, or give KeyedTimer an Equal");

 public:
  /// Makes an empty KeyedTimer on `timer`. `on_expire` is called once for each value that expires, where the timer runs
  /// its tasks. It may change the value, which is destroyed afterwards. Its exceptions go to the timer's error handler.
  /// Throws std::invalid_argument for an empty function, std::bad_alloc.
  KeyedTimer(Timer& timer, std::function<void(const K&, V&)> on_expire);

  /// Stops and destroys the values. Waits for each running on_expire, except inside it. Hold no lock that on_expire
  /// takes.
  ~KeyedTimer();

  KeyedTimer(const KeyedTimer&) = delete;
  KeyedTimer& operator=(const KeyedTimer&) = delete;

  /// Stores the value and lets it expire after a delay or at a deadline; see When. A delay of zero or less and a
  /// deadline that has passed expire at the next tick, never inside the call. Replaces the present value of the key.
  /// Returns Added, Replaced, Stopped or Rejected. Throws std::invalid_argument for a NaN delay, std::bad_alloc, and
  /// what Timer::new_timeout() throws when the timer cannot be started. A point of the timer's own clock costs no clock
  /// reading, as with Timer::new_timeout().
  [[nodiscard("it tells whether the value was stored")]] KeyedResult set(K key, V value, When when);

  /// Moves the deadline of a value, earlier or later. Returns Moved, NotFound, Stopped or Rejected. Rejected: its
  /// expiry had begun, and the timer has no room for a new timeout. Then the value expires, unless an executor drops
  /// the expiry. Throws std::invalid_argument for a NaN delay. Throws std::bad_alloc for an earlier deadline, or if its
  /// expiry had begun. A point of the timer's own clock costs no clock reading, unless the expiry had begun.
  [[nodiscard("it tells whether there was a value to move")]] KeyedResult move(const K& key, When when);

  /// Takes a value out. Returns nothing if the key has none. If the move constructor of V throws, remove() loses the
  /// value. If a move constructor of K or V throws, drain() and stop() lose all values.
  std::optional<V> remove(const K& key);

  /// Returns whether there is a value that has not expired.
  bool contains(const K& key) const;

  /// Returns the time to the deadline, zero if that has passed, or nothing if there is no such key.
  std::optional<std::chrono::nanoseconds> remaining(const K& key) const;

  /// Returns the number of values. Waits for no lock. It adds up the shards one after the other, so beside calls that
  /// set, expire or take out values it may count too few or too many. It also counts an expiring value, and one whose
  /// set() the timer is about to refuse.
  std::size_t size() const noexcept;

  /// Takes out all values of one moment, in no order, and keeps working. O(n). Locks all shards at once, for as long
  /// as allocating the result takes. Throws std::bad_alloc; then nothing has changed.
  std::vector<std::pair<K, V>> drain() { return take_all(false); }

  /// Takes out all values of one moment, in no order. set() and move() refuse from then on. Does not wait for a running
  /// on_expire. Costs as much as drain(). Throws std::bad_alloc; then nothing has changed.
  std::vector<std::pair<K, V>> stop() { return take_all(true); }

 private:
  using Item = std::pair<K, V>;
  using Entry = detail::KeyedEntry<K, V>;
  using OwnedEntry = typename Entry::OwnedEntry;
  using Cell = detail::KeyedCell<Entry>;

  // 32 shards: take_all() locks all of them at once, and ThreadSanitizer allows a thread no more than 64 locks. The
  // tests of keys by shard repeat the 5.
  static constexpr int kShardBits = 5;
  static constexpr std::size_t kShards = std::size_t{1} << kShardBits;

  using Table = detail::KeyedTable<Cell, kShardBits>;
  using Tables = std::array<Table, kShards>;

  /// A part of the keys, with a lock. A call for one key locks its shard; drain() and stop() lock all shards. An expiry
  /// takes its value without the lock. The cell of the key stays until tidy() gets the lock and erases it.
  struct alignas(64) Shard {
    Cell* find(std::uint32_t hash, const K& key, const Equal& equal) const;
    Cell* find(const Entry& entry) const noexcept;
    void tidy() noexcept;
    void add(std::ptrdiff_t count) noexcept { size.fetch_add(count, std::memory_order_relaxed); }

    mutable std::mutex mutex;

    // Guarded by mutex. A cell stays until its value has ended and a thread has got the lock.
    Table table;
    bool stopped = false;

    // The number of values. A set() adds one before it arms. The thread that has claimed a value subtracts it; between
    // these steps a set() may add a value for the same key, and size() counts both. Below zero for a moment if drain()
    // has subtracted all cells, and will add those of ended values again. relaxed: a number by itself.
    std::atomic<std::ptrdiff_t> size{0};

    detail::KeyedLeftovers<Entry> leftovers;
  };

  class Lock;
  class State;
  struct Taken;

  static std::size_t shard_number(std::uint32_t hash) noexcept { return hash >> (32 - kShardBits); }
  std::uint32_t hash_of(const K& key) const { return detail::mixed_hash(hash_(key), seed_); }
  Shard& shard_of(std::uint32_t hash) const noexcept { return state_->shards[shard_number(hash)]; }
  static KeyedResult refusal(detail::Result why) noexcept {
    return why == detail::Result::Stopped ? KeyedResult::Stopped : KeyedResult::Rejected;
  }
  KeyedResult arm_again(Cell& cell, When when);
  KeyedResult add(Shard& shard, OwnedEntry& fresh, When when);
  std::vector<Item> take_all(bool for_good);

  Timer& timer_;
  const Hash hash_{};
  const Equal equal_{};
  const detail::HashSeed seed_ = detail::HashSeed::random();
  State* const state_;
  internal::Sleeper& sleeper_;  // of timer_, for HeldCalls
};

}  // namespace hwt

#include "hashed_wheel_timer/detail/keyed/keyed_timer_impl.h"
