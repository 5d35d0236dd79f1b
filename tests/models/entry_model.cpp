// Model of one KeyedEntry of a KeyedTimer and of its KeyedLeftovers. Thread 0 has the lock of the shard: it arms the
// entry again, replaces its value and takes it. Threads 1 and 2 are the expiries of the first and of the second
// timeout; they have no lock. Thread 1 tidies when thread 0 has unlocked. Checks: each value is taken once. The thread
// that takes it sees all earlier changes. After an end(), holder() returns null. Each record is deleted once, after its
// last use.

#include "hashed_wheel_timer/detail/keyed/entry.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using Entry = hwt::detail::KeyedEntry<int, int>;
using Leftovers = hwt::detail::KeyedLeftovers<Entry>;

struct Entries final : Run {
  // References: the value's, the cell's, and that of the first timeout's task.
  Entry* const record = new Entry(1, 0, 0);
  Leftovers leftovers;
  std::atomic<bool> armed_again{false};  // hands the second timeout to thread 2, as the timer's queue does
  std::atomic<bool> unlocked{false};
  Ghost<bool> expired = false;
  Ghost<int> made = 1;
  Ghost<int> taken = 0;

  Entries() { record->add_references(2); }

  void thread(unsigned index) override {
    if (index == 0) {
      with_the_lock();
    } else if (index == 1) {
      expire(0);
      while (!unlocked.load(std::memory_order_acquire) || !expired) yield();
      tidy();
    } else {
      while (!armed_again.load(std::memory_order_acquire)) yield();
      expire(1);
      expired = true;
    }
  }

  void tidy() {
    while (Entry* const left = leftovers.take_one()) Leftovers::free(*left);
  }

  void with_the_lock() {
    record->add_references(1);
    armed_again.store(true, std::memory_order_release);
    if (record->rearm(1)) {
      Entry::OwnedEntry fresh(new Entry(1, 0, 0));
      ++made;
      count(record->exchange(std::move(fresh)));
    } else {
      MODEL_ASSERT(record->holder() == nullptr);
    }
    if (record->end()) count(record->take());
    tidy();
    unlocked.store(true, std::memory_order_release);
    MODEL_ASSERT(record->hash == 0);  // an owner may read the record without the lock
    Entry::Drop()(record);
  }

  void expire(unsigned arming) {
    if (record->end(arming)) {
      Entry::OwnedEntry value = record->take();
      MODEL_ASSERT(value != nullptr);
      ++value->value;
      ++taken;
      leftovers.push(*record, std::move(value));
    }
    Entry::Drop()(record);
  }

  /// Counts a value that thread 0 has taken out of the record. Null: an expiry has taken the first value, so that the
  /// fresh one is still in the record.
  void count(Entry::OwnedEntry value) {
    if (value == nullptr) {
      value = record->take();
      if (value == nullptr) return;
    }
    ++value->value;
    ++taken;
  }

  void after() override {
    tidy();
    MODEL_ASSERT(taken == made);
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  return model::check<model::Entries>({.threads = 3, .schedules = 50'000}, argc, argv);
}
