// The counters of a timer (Counters). One thread begins timeouts, another ends them, and a third reads. The reader
// never finds more ends than beginnings.

#include "hashed_wheel_timer/internal/core/counters.h"

#include <atomic>

#include "tests/models/genmc/program.h"

namespace {

struct Producer {
  hwt::internal::ProducerCounters counters;
};

struct Producers {
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Producer& producer : all) visit(producer);
  }
  Producer all[2];
};

constexpr int kTimeouts = 3;

constinit hwt::internal::Counters counters;
constinit Producers producers;
constinit std::atomic<int> begun{0};  // their own way from thread to thread

void begin() {
  for (int i = 1; i <= kTimeouts; ++i) {
    producers.all[0].counters.scheduled.add(1);
    begun.store(i, std::memory_order_release);
  }
}
void end() {
  model::wait_until([] { return begun.load(std::memory_order_acquire) >= 1; });
  counters.expired.add(1);
  model::wait_until([] { return begun.load(std::memory_order_acquire) >= 2; });
  counters.note_cancelled_without_producer();
  model::wait_until([] { return begun.load(std::memory_order_acquire) >= 3; });
  producers.all[1].counters.cancelled.add(1);
}
void read() { MODEL_ASSERT(counters.read_timeouts(producers).pending >= 0); }

}  // namespace

int main() {
  model::run<begin, end, read>();
  MODEL_ASSERT(counters.read_timeouts(producers).pending == 0);
  return 0;
}
