// The counters of a timer by themselves (Counters, LatenessRecord). One thread begins timeouts, another ends them in
// every way, and a third reads. A reader never finds more ends than beginnings. The sum and the maximum contain every
// value that is counted.

#include "hashed_wheel_timer/internal/core/counters.h"
#include "tests/models/checker.h"

namespace model {
namespace {

struct Place {
  std::size_t size() const { return 0; }
};

struct Producer {
  hwt::internal::ProducerCounters counters;
  Place place;
};

struct Producers {
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Producer& producer : all) visit(producer);
  }
  std::array<Producer, 2> all;
};

constexpr int kTimeouts = 4;
constexpr std::int64_t kLate = 4;  // each timeout that expires, in ns

struct Counts final : Run {
  hwt::internal::Counters counters;
  Producers producers;
  std::atomic<int> begun{0};  // hands each timeout from the first thread to the second

  void thread(unsigned index) override {
    if (index == 0) {
      for (int i = 1; i <= kTimeouts; ++i) {
        producers.all[0].counters.scheduled.add(1);
        begun.store(i, std::memory_order_release);
      }
    } else if (index == 1) {
      for (int i = 1; i <= kTimeouts; ++i) {
        while (begun.load(std::memory_order_acquire) < i) yield();
        end(random(4));
      }
    } else {
      MODEL_ASSERT(counters.read_timeouts(producers).pending >= 0);
      const hwt::LatencyHistogram late = counters.lateness.snapshot();
      MODEL_ASSERT(late.count() == 0 || late.max() == nanoseconds(kLate));
      MODEL_ASSERT(late.sum() >= nanoseconds(kLate) * static_cast<int>(late.count()));
    }
  }

  void end(unsigned how) {
    if (how == 0) {
      counters.lateness.add(1 + kLate, 1);
      counters.expired.add(1);
    } else if (how == 1) {
      counters.unprocessed.add(1);
    } else if (how == 2) {
      counters.note_cancelled_without_producer();
    } else {
      producers.all[1].counters.cancelled.add(1);
    }
  }

  void after() override { MODEL_ASSERT(counters.read_timeouts(producers).pending == 0); }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) { return model::check<model::Counts>({.threads = 3, .schedules = 20'000}, argc, argv); }
