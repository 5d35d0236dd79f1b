// A value of a KeyedTimer (KeyedEntry, KeyedLeftovers). The owner of the lock arms it again, replaces it and takes it.
// The expiries of both timeouts, without the lock, want it too. Each value is taken once, as it was left. Each record
// is deleted once, when no thread uses it.

#include "hashed_wheel_timer/detail/keyed/entry.h"

#include <utility>

#include "tests/models/genmc/program.h"

namespace {

using Entry = hwt::detail::KeyedEntry<int, int>;
using Leftovers = hwt::detail::KeyedLeftovers<Entry>;

Entry* record;
constinit Leftovers leftovers;
int made = 1;
int had[2];  // by the owner of the lock; by an expiry, of which at most one takes a value

int have(Entry::Value value) {
  if (value == nullptr) value = record->take();  // an expiry has taken the one before
  if (value == nullptr) return 0;
  ++value->value;
  return 1;
}

void with_the_lock() {
  if (record->rearm(1)) {
    Entry::Value fresh(new Entry(1, 0, 0));
    ++made;
    had[0] += have(record->exchange(std::move(fresh)));
  } else {
    MODEL_ASSERT(record->holder() == nullptr);
  }
  if (record->end()) had[0] += have(record->take());
  while (Entry* const left = leftovers.take_one()) Leftovers::free(*left);
  Entry::Drop()(record);
}

template <unsigned kArming>
void expire() {
  if (record->end(kArming)) {
    Entry::Value taken = record->take();
    MODEL_ASSERT(taken != nullptr);
    ++taken->value;
    had[1] = 1;
    leftovers.push(*record, std::move(taken));
  }
  Entry::Drop()(record);
}

}  // namespace

int main() {
  // References: the value's, the cell's, and those of the tasks of both timeouts.
  record = new Entry(1, 0, 0);
  record->add_references(3);
  model::run<with_the_lock, expire<0>, expire<1>>();
  while (Entry* const left = leftovers.take_one()) Leftovers::free(*left);
  MODEL_ASSERT(had[0] + had[1] == made);
  return 0;
}
