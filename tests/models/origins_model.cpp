// Timer::for_each_pending() of a whole timer that traces origins. One thread schedules and cancels, so that a node has
// several timeouts in turn. Another moves timeouts and turns the wheel. A deadline and an origin that are visited
// together belong to the same timeout. The timeout that is pending all the time is visited once.

#include "hashed_wheel_timer/internal/memory/origin_table.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using hwt::Origin;
using hwt::TimeoutId;
using hwt::TracedTimeout;
using Time = std::chrono::steady_clock::time_point;

constexpr unsigned kLives = 4;
constexpr Time kFar = (Time::max)() - nanoseconds(1000);

/// Each line has a deadline of its own.
Origin line(unsigned number) { return Origin("model", number + 1); }
Time deadline(unsigned number) { return kFar + nanoseconds(10 * number); }

struct Origins final : Run {
  hwt::ManualTimer timer{hwt::Options{.tick_duration = nanoseconds(1), .trace_origins = true}};
  std::array<std::atomic<std::uint64_t>, kLives> ids{};  // the user's own
  const TimeoutId stable = timer.add([] {}, deadline(kLives), line(kLives));

  void thread(unsigned index) override {
    if (index == 0) {
      for (unsigned life = 0; life < kLives; ++life) {
        const TimeoutId id = timer.add([] {}, deadline(life), line(life));
        ids[life].store(id.value(), std::memory_order_release);
        if (random(4) != 0) timer.cancel(id);
      }
    } else if (index == 1) {
      walk();
      walk();
    } else {
      for (int times = 0; times < 3; ++times) {
        const unsigned life = random(kLives);
        const auto id = TimeoutId::from_value(ids[life].load(std::memory_order_acquire));
        switch (random(3)) {
          case 0:
            timer.cancel(id);
            break;
          case 1:
            timer.reschedule(id, deadline(life) + nanoseconds(1));
            break;
          default:
            timer.advance(nanoseconds(1));
            break;
        }
      }
    }
  }

  void walk() {
    int found = 0;
    timer.for_each_pending([&](const TracedTimeout& timeout) {
      const unsigned number = timeout.origin.line() - 1;
      const auto moved = timeout.deadline - deadline(number);
      MODEL_ASSERT(moved == nanoseconds(0) || moved == nanoseconds(1));
      if (number != kLives) return;
      MODEL_ASSERT(timeout.id == stable);
      ++found;
    });
    MODEL_ASSERT(found == 1);
  }

  void after() override {
    timer.stop();
    timer.for_each_pending([](const TracedTimeout&) { fail("it is not pending"); });
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  // A process keeps its origins for ever, and memory that a run allocates must go with it.
  for (unsigned number = 0; number <= model::kLives; ++number) {
    hwt::internal::OriginTable::number_of(model::line(number));
  }
  return model::check<model::Origins>({.threads = 3, .schedules = 10'000}, argc, argv);
}
