// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "hashed_wheel_timer/detail/intrusive_stack.h"
#include "hashed_wheel_timer/timeout.h"

namespace hwt::detail {

/// Decides which thread gets the value of a key. A timeout on the worker, and a thread that holds the lock of the key's
/// shard, may both want it. One exchange of claim_ decides, so the worker needs no lock and waits for no thread.
///
/// Each arming of a key has a number, which its timeout knows. A timeout claims the value only if there is no later
/// arming. So an outdated timeout gets nothing, however late its task runs.
///
/// A record is armed until a thread claims it (kEnded). The winner then takes the value out of holder_, and a
/// later set() of the key makes a new record. A set() before the claim keeps the record, and exchanges the value.
///
/// A record and its value are one allocation, which is freed with the last reference. The value has a reference until
/// it ends. The cell in the table has one. The task of each timeout has one, and may be destroyed years later.
class KeyedRecord {
 public:
  explicit KeyedRecord(std::uint32_t its_hash) noexcept : hash(its_hash), holder_(this) {}
  KeyedRecord(const KeyedRecord&) = delete;
  KeyedRecord& operator=(const KeyedRecord&) = delete;

  const std::uint32_t hash;

  // The claim. An expiry counts itself in RunningExpiries, and then claims with release. The destructor of the
  // KeyedTimer, which finds a value claimed, acquires that. So it sees the count, and waits for the expiry.

  /// Claims the value for the timeout of this arming. Returns true once: the caller owns the value. Returns false if
  /// the value was claimed or armed again before. Numbers repeat after 2^31 armings of one key, which matters only to
  /// a task that is late by half as many.
  bool end(std::uint32_t arming) noexcept {
    std::uint32_t seen = claim_.load(std::memory_order_acquire);
    while ((seen & kEnded) == 0 && !is_outdated(arming, seen >> 1)) {
      if (claim_.compare_exchange_weak(seen, seen | kEnded, std::memory_order_acq_rel, std::memory_order_acquire))
        return true;
    }
    return false;
  }
  /// Returns whether an arming comes before the latest one: the latest is 1 to 2^30 numbers ahead. Both are numbers of
  /// 31 bits, which begin again at 0.
  static constexpr bool is_outdated(std::uint32_t arming, std::uint32_t latest) noexcept {
    constexpr std::uint32_t kNumbers = std::uint32_t{1} << 31;
    return ((latest - arming) & (kNumbers - 1)) - 1 < kNumbers / 2;
  }

  /// Claims the value for a thread that holds the lock, or that has taken the table out. Returns true once.
  bool end() noexcept { return (claim_.fetch_or(kEnded, std::memory_order_acq_rel) & kEnded) == 0; }

  /// Returns whether the value was claimed. A later set() of the key then makes a new record. Called with the lock
  /// held.
  bool ended() const noexcept { return (claim_.load(std::memory_order_relaxed) & kEnded) != 0; }

  /// Returns the number of the next arming. Called with the lock held. The caller schedules the timeout of that number
  /// first, because the timer may refuse it, and then calls rearm().
  std::uint32_t next_arming() const noexcept { return (claim_.load(std::memory_order_relaxed) >> 1) + 1; }
  /// Makes earlier armings outdated. Returns false if a timeout has claimed the value: one of an earlier arming, or
  /// that of this arming, which may expire before this call.
  bool rearm(std::uint32_t arming) noexcept {
    std::uint32_t before = (arming - 1) << 1;
    return claim_.compare_exchange_strong(before, arming << 1, std::memory_order_acq_rel, std::memory_order_relaxed);
  }

  /// Adds references. A sole owner needs no read-modify-write, because no other thread can change the count meanwhile.
  void add_references(std::uint32_t count) noexcept {
    if (references_.load(std::memory_order_acquire) == 1) {
      references_.store(1 + count, std::memory_order_relaxed);
    } else {
      references_.fetch_add(count, std::memory_order_relaxed);
    }
  }
  /// Drops a reference. Returns whether it was the last one; then the caller must free the memory. acquire: the caller
  /// sees everything that other owners did before they dropped theirs.
  bool drop_reference() noexcept {
    return references_.load(std::memory_order_acquire) == 1 || references_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

 private:
  static constexpr std::uint32_t kEnded = 1;

  std::atomic<std::uint32_t> claim_{0};  // the number of the latest arming, doubled, and kEnded
  // Any owner. Each drop releases what its thread did with the record, and the last owner acquires that before it frees
  // the record. A relaxed read-modify-write between the two continues the release sequence of the drops; a store ends
  // it. So a sole owner acquires before it stores. All later owners have their references from that thread, through the
  // timer, the lock or the leftovers, and so they see the earlier drops too.
  std::atomic<std::uint32_t> references_{1};

 protected:
  ~KeyedRecord() = default;

  /// The record that holds the present value of the key. At first it is this record. set() exchanges it, with the lock
  /// held, for a record with the new value, which has no timeout of its own. The winner of the claim exchanges it for
  /// null. release and acquire hand over the value. When the value of a record without a timeout has ended,
  /// KeyedLeftovers stores here the record that held it. The last member, next to the key, because a search reads both.
  std::atomic<KeyedRecord*> holder_;
};

/// A record with its key and value. Both are destroyed before the memory is freed.
template <class K, class V>
class KeyedEntry final : public KeyedRecord {
 public:
  KeyedEntry(K&& its_key, V&& its_value, std::uint32_t its_hash)
      : KeyedRecord(its_hash), key(std::move(its_key)), value(std::move(its_value)) {}
  ~KeyedEntry() {}  // NOLINT(modernize-use-equals-default): key and value were destroyed before

  struct Drop {
    void operator()(KeyedEntry* entry) const noexcept {
      if (entry->drop_reference()) delete entry;
    }
  };
  struct End {
    void operator()(KeyedEntry* entry) const noexcept {
      std::destroy_at(std::addressof(entry->value));
      std::destroy_at(std::addressof(entry->key));
      Drop()(entry);
    }
  };
  using Reference = std::unique_ptr<KeyedEntry, Drop>;
  /// Owns the key, the value and one reference.
  using OwnedEntry = std::unique_ptr<KeyedEntry, End>;

  /// Returns the record that holds the value, or null if the value was claimed. Called with the lock held. Reads the
  /// claim, because an expiry without the lock first claims the value and then takes it. From the claim on, no thread
  /// may find this record by its key.
  const KeyedEntry* holder() const noexcept {
    return ended() ? nullptr : static_cast<const KeyedEntry*>(holder_.load(std::memory_order_acquire));
  }
  /// Stores `other`. Returns the value that was there, or null if an expiry has taken it.
  OwnedEntry exchange(OwnedEntry other) noexcept {
    return OwnedEntry(static_cast<KeyedEntry*>(holder_.exchange(other.release(), std::memory_order_acq_rel)));
  }
  /// Takes the value out. Called by the winner of the claim.
  OwnedEntry take() noexcept { return exchange(nullptr); }

  union {
    K key;
  };
  union {
    V value;
    KeyedEntry* next;  // in KeyedLeftovers
  };

 private:
  template <class>
  friend class KeyedLeftovers;
};

/// Records that expiries left behind. Their values are gone, but their keys may still be in use: a thread that holds
/// the lock compares keys, and must find no key destroyed.
template <class Entry>
class KeyedLeftovers {
 public:
  /// Destroys the value of `taken`, which was taken from `record`, and keeps its key. Any thread.
  void push(Entry& record, typename Entry::OwnedEntry taken) noexcept {
    Entry* const entry = taken.release();
    std::destroy_at(std::addressof(entry->value));
    if (entry != &record) {
      record.add_references(1);
      entry->holder_.store(&record, std::memory_order_relaxed);
    }
    entries_.push(*entry);
  }

  bool empty() const noexcept { return entries_.empty(); }
  /// Takes an entry, or returns null. With the lock held.
  Entry* take_one() noexcept { return entries_.take_one(); }

  /// Returns the record from which the value of `entry` was taken.
  static Entry& record_of(Entry& entry) noexcept {
    auto* const record = static_cast<Entry*>(entry.holder_.load(std::memory_order_relaxed));
    return record == nullptr ? entry : *record;
  }
  /// Destroys the key and drops the references. Called without the lock, because a destructor of the user runs.
  static void free(Entry& entry) noexcept {
    Entry& record = record_of(entry);
    if (&record != &entry) typename Entry::Drop()(&record);
    std::destroy_at(std::addressof(entry.key));
    typename Entry::Drop()(&entry);
  }

 private:
  static Entry*& next(Entry& entry) noexcept { return entry.next; }

  IntrusiveStack<Entry, next> entries_;
};

/// A place in the table. It has both the timeout and the entry, so that the cache misses of the two overlap.
template <class Entry>
struct KeyedCell {
  Timeout timeout;  // of the latest arming
  typename Entry::Reference entry;
  std::uint32_t hash = 0;

  bool is_free() const noexcept { return entry == nullptr; }
};

}  // namespace hwt::detail
