#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "hashed_wheel_timer/detail/intrusive_stack.h"
#include "hashed_wheel_timer/timeout.h"

namespace hwt::detail {

/// Decides which thread gets the value of a key. A timeout on the worker, and a thread that holds the lock of the key's
/// shard, may both want it. One compare-exchange decides, so the worker needs no lock and waits for no thread.
///
/// Each arming of a key has a number, which its timeout knows. A timeout gets the value unless there is a later arming:
/// so one that is out of date gets nothing, whenever it comes.
///
/// A record with its value is one piece of memory, which goes with the last reference. There is one for the value,
/// until its end; one for the cell in the table; and one for each timeout's task, which may be years late.
class KeyedRecord {
 public:
  explicit KeyedRecord(std::uint32_t its_hash) noexcept : hash(its_hash), holder_(this) {}
  KeyedRecord(const KeyedRecord&) = delete;
  KeyedRecord& operator=(const KeyedRecord&) = delete;

  const std::uint32_t hash;

  // The claim. acq_rel: the winner sees all earlier changes to the record.

  /// True, once: the value is the caller's. For the timeout of this arming. (After 2^31 armings of one key numbers come
  /// again; a task would have to be late by all of them.)
  bool end(std::uint32_t arming) noexcept {
    std::uint32_t seen = claim_.load(std::memory_order_acquire);
    while ((seen & kEnded) == 0 && seen >> 1 <= arming) {
      if (claim_.compare_exchange_weak(seen, seen | kEnded, std::memory_order_acq_rel, std::memory_order_acquire))
        return true;
    }
    return false;
  }
  /// Claims the value for a thread that holds the lock. Returns true once.
  bool end() noexcept { return (claim_.fetch_or(kEnded, std::memory_order_acq_rel) & kEnded) == 0; }

  /// With the lock held: returns whether an end has begun. A later set() of the key then makes a new record.
  bool ended() const noexcept { return (claim_.load(std::memory_order_relaxed) & kEnded) != 0; }

  /// With the lock held. The next arming's timeout is made first, since that may be refused. It may even expire before
  /// rearm(), which is false then, as it is when an earlier one has expired.
  std::uint32_t next_arming() const noexcept { return (claim_.load(std::memory_order_relaxed) >> 1) + 1; }
  bool rearm(std::uint32_t arming) noexcept {
    std::uint32_t before = (arming - 1) << 1;
    return claim_.compare_exchange_strong(before, arming << 1, std::memory_order_acq_rel, std::memory_order_relaxed);
  }

  /// The sole owner needs no read-modify-write, as nobody else can add or drop one meanwhile.
  void add_references(std::uint32_t count) noexcept {
    const std::uint32_t seen = references_.load(std::memory_order_relaxed);
    if (seen == 1) {
      references_.store(1 + count, std::memory_order_relaxed);
    } else {
      references_.fetch_add(count, std::memory_order_relaxed);
    }
  }
  /// True: that was the last one, and the caller must free the memory. acquire: after all that the others did.
  bool drop_reference() noexcept {
    return references_.load(std::memory_order_acquire) == 1 || references_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

 private:
  static constexpr std::uint32_t kEnded = 1;

  std::atomic<std::uint32_t> claim_{0};  // the number of the latest arming, doubled, and kEnded
  std::atomic<std::uint32_t> references_{1};

 protected:
  ~KeyedRecord() = default;

  /// The record that has the value: this one, until set() replaces the value by that of another, which has no timeout.
  /// Exchanged by the thread that replaces it, with the lock held, and by the winner of the claim, for null. release
  /// and acquire: the stored value. Of a record that has no timeout itself: see KeyedLeftovers. Last, since a search
  /// reads this and the key.
  std::atomic<KeyedRecord*> holder_;
};

/// The record with key and value, which are destroyed before their memory goes.
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
  /// Key and value, which go with it.
  using Value = std::unique_ptr<KeyedEntry, End>;

  /// With the lock held. Null: its end has begun. By the claim: an expiry without the lock may be about to take the
  /// value, and meanwhile nobody may take this for the key's record.
  const KeyedEntry* holder() const noexcept {
    return ended() ? nullptr : static_cast<const KeyedEntry*>(holder_.load(std::memory_order_acquire));
  }
  /// The other value instead; null: an expiry has taken the one that was there.
  Value exchange(Value other) noexcept {
    return Value(static_cast<KeyedEntry*>(holder_.exchange(other.release(), std::memory_order_acq_rel)));
  }
  /// For the winner of the claim.
  Value take() noexcept { return exchange(nullptr); }

  union {
    K key;
  };
  union {
    V value;
    KeyedEntry* next;  // among those that are left over
  };

 private:
  template <class>
  friend class KeyedLeftovers;
};

/// Records that expiries left behind because they did not get the lock. Their values are gone, but their keys may still
/// be in use: a thread that holds the lock compares keys, and must find no key destroyed.
template <class Entry>
class KeyedLeftovers {
 public:
  /// `taken` was taken from `record`; its value is destroyed here. Any thread.
  void push(Entry& record, typename Entry::Value taken) noexcept {
    Entry* const entry = taken.release();
    std::destroy_at(std::addressof(entry->value));
    if (entry != &record) {
      record.add_references(1);
      entry->holder_.store(&record, std::memory_order_relaxed);
    }
    entries_.push(*entry);
  }

  bool empty() const noexcept { return entries_.empty(); }
  /// Takes all entries, linked by `next`. With the lock held.
  Entry* take_all() noexcept { return entries_.take_all(); }

  /// The record that this one's value was taken from.
  static Entry& record_of(Entry& entry) noexcept {
    auto* const record = static_cast<Entry*>(entry.holder_.load(std::memory_order_relaxed));
    return record == nullptr ? entry : *record;
  }
  /// Without the lock: destroys keys.
  static void free(Entry* first) noexcept {
    while (first != nullptr) {
      Entry* const entry = std::exchange(first, first->next);
      Entry& record = record_of(*entry);
      if (&record != entry) typename Entry::Drop()(&record);
      std::destroy_at(std::addressof(entry->key));
      typename Entry::Drop()(entry);
    }
  }

 private:
  static Entry*& next(Entry& entry) noexcept { return entry.next; }

  IntrusiveStack<Entry, next> entries_;
};

/// A place in the table. It names both timeout and entry, so that they are fetched at the same time.
template <class Entry>
struct KeyedCell {
  Timeout timeout;  // of the latest arming
  typename Entry::Reference entry;
  std::uint32_t hash = 0;

  bool is_free() const noexcept { return entry == nullptr; }
};

}  // namespace hwt::detail
