// A value of a KeyedTimer by itself (KeyedEntry, KeyedLeftovers). The owner of the lock arms it again, replaces it and
// takes it. Two expiries without the lock want it too. Each value is taken once, as it was left. A value that has begun
// to end is not found any more. Each record is deleted once, when no thread uses it.

#include <atomic>
#include <utility>

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
  std::atomic<bool> armed_again{false};  // the second timeout's own way to its thread
  Ghost<int> made = 1;
  Ghost<int> had = 0;

  Entries() { record->add_references(2); }

  void thread(unsigned index) override {
    if (index == 0) {
      with_the_lock();
    } else if (index == 1) {
      expire(0);
    } else {
      while (!armed_again.load(std::memory_order_acquire)) yield();
      expire(1);
    }
  }

  void with_the_lock() {
    record->add_references(1);
    armed_again.store(true, std::memory_order_release);
    if (record->rearm(1)) {
      Entry::Value fresh(new Entry(1, 0, 0));
      ++made;
      have(record->exchange(std::move(fresh)));
    } else {
      MODEL_ASSERT(record->holder() == nullptr);
    }
    if (record->end()) have(record->take());
    Leftovers::free(leftovers.take_all());
    Entry::Drop()(record);
  }

  void expire(unsigned arming) {
    if (record->end(arming)) {
      Entry::Value taken = record->take();
      MODEL_ASSERT(taken != nullptr);
      ++taken->value;
      ++had;
      leftovers.push(*record, std::move(taken));
    }
    Entry::Drop()(record);
  }

  void have(Entry::Value value) {
    if (value == nullptr) {
      // An expiry has taken the one before.
      value = record->take();
      if (value == nullptr) return;
    }
    ++value->value;
    ++had;
  }

  void after() override {
    Leftovers::free(leftovers.take_all());
    MODEL_ASSERT(had == made);
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) { return model::check({"entry", 3, 50'000, &model::make<model::Entries>}, argc, argv); }
