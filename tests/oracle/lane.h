#pragma once

// One thread's traffic: a ring of timeouts, which it schedules, moves, cancels, and leaves to others.

#include "tests/oracle/caller.h"

namespace hwt::oracle {

/// Handles that all threads share.
class Exchange {
 public:
  struct Entry {
    Timeout handle;
    Record* record = nullptr;
  };

  /// Leaves an entry, and takes the one that was there.
  Entry swap(std::uint64_t place, Entry entry) {
    Slot& slot = slots_[place % slots_.size()];
    const std::lock_guard lock(slot.mutex);
    return std::exchange(slot.entry, std::move(entry));
  }

 private:
  struct Slot {
    std::mutex mutex;
    Entry entry;
  };
  std::array<Slot, 31> slots_;
};

/// The records of one thread. Other threads look at those that are open.
class Records {
 public:
  explicit Records(std::size_t most) : records_(most) {}
  /// Null: all are used. Any thread.
  Record* next() {
    const std::size_t number = used_.load() == records_.size() ? records_.size() : used_.fetch_add(1);
    return number < records_.size() ? &records_[number] : nullptr;
  }
  std::size_t used() const { return std::min(used_.load(), records_.size()); }
  Record& operator[](std::size_t number) { return records_[number]; }
  /// Null: none was found that may be looked at.
  Record* any_open(perf::Random& random) {
    if (used() == 0) return nullptr;
    const std::uint64_t back = random.next() % std::min<std::size_t>(used(), random.next() % 4 == 0 ? 1'000'000 : 64);
    Record& record = records_[used() - 1 - back];
    return record.id.load(std::memory_order_acquire) != 0 && record.is_open ? &record : nullptr;
  }

 private:
  std::vector<Record> records_;
  std::atomic<std::size_t> used_{0};
};

/// Handles and ids of timers that have ended. They stay stale for ever.
class Relics {
 public:
  void keep(std::deque<Records>& all) {
    for (Records& records : all)
      for (std::size_t i = 0; i < records.used(); i += 997) {
        if (records[i].copies == 0) handles_.push_back(records[i].handle);
        ids_.push_back(TimeoutId::from_value(records[i].id));
        if (ids_.size() > kMostIds) ids_.pop_front();
      }
  }
  void check_ids(Ledger& ledger, Timer& timer) {
    for (const TimeoutId id : ids_) {
      ledger.expect(timer.cancel(id) == CancelResult::Gone && !timer.find(id) && !timer.reschedule(id, 1ms),
                    "an id is Gone for every other timer");
    }
  }
  /// When their timer is gone. Drops them, because they keep its memory.
  void check_handles(Ledger& ledger) {
    for (Timeout& handle : handles_) {
      ledger.expect(!handle.cancel() && !handle.reschedule(1ms) && !handle.is_pending() && handle.timer() == nullptr,
                    "a handle outlives its timer, and stays stale");
    }
    handles_ = {};
  }

 private:
  static constexpr std::size_t kMostIds = 500;
  std::vector<Timeout> handles_;
  std::deque<TimeoutId> ids_;
};

/// Of all rounds.
inline Relics& relics() {
  static Relics relics;
  return relics;
}

/// How the lanes of a round behave.
struct Traffic {
  std::size_t ring = 256;
  int steps = 0;
  bool orders = false;     // each lane has a stream of timeouts that run in order
  bool shortages = false;  // memory is refused now and then
  bool plans = false;      // tasks use the timer
  bool elsewhere = false;  // some tasks run on an executor of their own
};

class Lane {
 public:
  Lane(Caller& caller, const Traffic& traffic, Totals& totals, Exchange& exchange, std::deque<Records>& all,
       Records& mine, std::uint64_t seed, std::uint8_t number)
      : caller_(caller),
        ledger_(caller.ledger()),
        traffic_(traffic),
        totals_(totals),
        exchange_(exchange),
        all_(all),
        mine_(mine),
        random_(seed),
        number_(number),
        ring_(traffic.ring) {}

  void go() {
    thread_number = number_;
    for (int i = 0; i < traffic_.steps && is_alive_; ++i) {
      std::optional<RandomShortage> shortage;
      if (traffic_.shortages && random_.next() % 64 == 0) shortage.emplace(totals_, random_, 6);
      step();
    }
  }

  /// Leaves nothing pending that is not due soon. Moves some of the timeouts. If the worker does not learn of such a
  /// move, a timeout of an hour stays pending, and the round does not end.
  void end_all() {
    for (Record* record : ring_) {
      if (record == nullptr || record->has_ended()) continue;
      const bool alone = !record->is_open;
      if (may_move(*record) && one_in(2) && caller_.move(*record, handle_of(*record), due(true), alone)) continue;
      caller_.cancel(*record, handle_of(*record), false, alone);
    }
  }

 private:
  bool one_in(std::uint64_t count) { return random_.next() % count == 0; }
  /// With a limit the ledger counts far timeouts until they are cancelled. The order of a stream stays.
  bool may_move(const Record& record) const { return record.order == 0 && !(record.is_far && ledger_.limit > 0); }
  static Timeout* handle_of(Record& record) { return record.by_handle ? &record.handle : nullptr; }

  void step() {
    Record*& place = ring_[at_];
    at_ = at_ + 1 == ring_.size() ? 0 : at_ + 1;
    if (place != nullptr && !place->has_ended() && keeps(*place)) return;
    if (place != nullptr) leave(*place);
    if (ledger_.stopped && one_in(64)) is_alive_ = false;  // a few calls more
    place = traffic_.orders && one_in(16) ? schedule_in_order() : schedule();
    if (one_in(256)) pause();
  }

  /// Uses a timeout that is pending or runs. Returns whether it keeps its place in the ring.
  bool keeps(Record& record) {
    const bool alone = !record.is_open;
    switch (random_.next() % 16) {
      case 0:
      case 1:
        if (!may_move(record)) break;
        caller_.move(record, handle_of(record), due(one_in(8)), alone);
        return true;
      case 2:
        use_of_others();
        return true;
      case 3:
        if (record.by_handle && record.is_open) return give(record);
        break;
      case 4:
        caller_.cancel(record, handle_of(record), true, alone);
        break;
      case 5: {
        if (!record.by_handle) break;
        Timeout moved = std::move(record.handle);  // its old place is a null handle
        ledger_.expect(!record.handle && !record.handle.cancel() && moved, "a handle that was moved is null", &record);
        record.handle = std::move(moved);
        break;
      }
      default:
        if (record.order != 0 && one_in(2)) return true;
    }
    if (!record.has_ended()) caller_.cancel(record, handle_of(record), false, alone);
    // Until its end is told: the thread that has cancelled it, its task, or stop() is about to.
    return !record.has_ended() && !ledger_.may_drop && !ledger_.stopping;
  }

  /// A timeout that has ended leaves the ring.
  void leave(Record& record) {
    if (record.runs == 1 && !record.running && record.copies == 0 && record.started != 0 && one_in(8)) {
      caller_.check_stale(record);
    }
    if (one_in(2)) record.handle = Timeout();
  }

  Due due(bool soon) {
    return caller_.due_in(
        random_, std::chrono::microseconds(soon ? random_.between(-500, 4'000) : random_.between(2'000, 400'000)));
  }

  Record* schedule() {
    Record* const record = next();
    if (record == nullptr) return nullptr;
    const std::uint64_t choice = random_.next() % 8;
    record->is_far = choice == 0;
    record->is_open = choice >= 5;
    if (traffic_.plans && one_in(4)) record->plan = static_cast<Plan>(random_.next() % static_cast<int>(Plan::kPlans));
    const auto form = static_cast<Caller::Form>(random_.next() % (Caller::kForms - (traffic_.elsewhere ? 0 : 1)));
    const Due due = record->is_far ? caller_.due_in(random_, 1h) : this->due(one_in(4));
    return caller_.schedule(*record, form, due) ? record : nullptr;
  }

  /// Deadlines that never decrease, also of one point.
  Record* schedule_in_order() {
    Record* const record = next();
    if (record == nullptr) return nullptr;
    record->stream = number_;
    record->order = ++order_;
    order_due_ = std::max(order_due_, ledger_.now() - 1ms);
    if (one_in(4)) order_due_ += std::chrono::microseconds(random_.between(0, 50));
    const auto form = one_in(2) ? Caller::Form::NewTrivial : Caller::Form::TryAdd;
    return caller_.schedule(*record, form, {order_due_, order_due_, order_due_}) ? record : nullptr;
  }

  Record* next() {
    Record* const record = mine_.next();
    is_alive_ = is_alive_ && record != nullptr;
    return record;
  }

  bool give(Record& record) {
    use(exchange_.swap(random_.next(), {record.handle, &record}));
    return true;
  }

  void use_of_others() {
    if (one_in(2)) return use(exchange_.swap(random_.next(), {}));
    Record* const record = all_[random_.next() % all_.size()].any_open(random_);
    if (record != nullptr) use({{}, record});
  }
  void use(Exchange::Entry entry) {
    if (entry.record == nullptr) return;
    Timeout* const handle = entry.handle ? &entry.handle : nullptr;
    if (one_in(2)) {
      caller_.move(*entry.record, handle, due(one_in(4)), false);
    } else {
      caller_.cancel(*entry.record, handle, one_in(4), false);
    }
  }

  void pause() {
    if (one_in(4)) {
      std::this_thread::sleep_for(std::chrono::microseconds(random_.between(0, 300)));
    } else {
      std::this_thread::yield();
    }
  }

  Caller& caller_;
  Ledger& ledger_;
  const Traffic& traffic_;
  Totals& totals_;
  Exchange& exchange_;
  std::deque<Records>& all_;
  Records& mine_;
  perf::Random random_;
  const std::uint8_t number_;
  bool is_alive_ = true;
  std::vector<Record*> ring_;
  std::size_t at_ = 0;
  std::uint32_t order_ = 0;
  TimePoint order_due_{};
};

}  // namespace hwt::oracle
