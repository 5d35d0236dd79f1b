// CycleRate: one thread measures the rate of the cycle counter while another finds that the counter stands still. In
// the end no thread uses the counter. A third thread that reads the window also reads the rate.

#include "hashed_wheel_timer/internal/time/request_clock.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using hwt::internal::ClockReading;
using hwt::internal::CycleRate;

struct Clock final : Run {
  CycleRate rate{true};

  void thread(unsigned index) override {
    const std::int64_t now = hwt::internal::steady_now();
    if (index == 0) {
      rate.measure({.before = 52'000'000, .time = now + 20'000'000, .after = 52'000'000});  // 0.4 ns a cycle
    } else if (index == 2) {
      for (int times = 0; times < 3; ++times) MODEL_ASSERT(rate.window() == 0 || rate.get() != 0);
    } else {
      while (rate.get() == 0) yield();
      rate.check({.before = 100, .time = now, .after = 100}, {.before = 100, .time = now + 1'000'000, .after = 100});
    }
  }

  void after() override {
    MODEL_ASSERT(!rate.wanted());
    MODEL_ASSERT(rate.window() == 0);
    MODEL_ASSERT(rate.behind() >= 1'000'000);
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  hwt::internal::cycle_counter::works = true;
  return model::check<model::Clock>({.threads = 3, .schedules = 20'000}, argc, argv);
}
