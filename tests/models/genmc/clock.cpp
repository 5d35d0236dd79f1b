// The end of the cycle counter (CycleRate). One thread measures the rate, another finds that the counter stands still.
// In the end no thread uses the counter. A thread that reads the window also reads the rate.

#include "hashed_wheel_timer/internal/time/request_clock.cpp"  // NOLINT(bugprone-suspicious-include): one unit
#include "tests/models/genmc/program.h"

std::chrono::steady_clock::time_point std::chrono::steady_clock::now() noexcept { return {}; }

namespace {

using hwt::internal::CycleRate;

CycleRate* rate;

void measure() {
  rate->measure({.before = 52'000'000, .time = 20'000'000, .after = 52'000'000});  // 0.4 ns a cycle
}
void check() {
  model::wait_until([] { return rate->get() != 0; });
  rate->check({.before = 100, .time = 0, .after = 100}, {.before = 100, .time = 1'000'000, .after = 100});
}
void use() {
  if (rate->window() != 0) MODEL_ASSERT(rate->get() != 0);
}

}  // namespace

int main() {
  hwt::internal::cycle_counter::works = true;
  rate = new CycleRate(true);
  model::run<measure, check, use>();
  MODEL_ASSERT(!rate->wanted() && rate->window() == 0 && rate->behind() >= 1'000'000);
  delete rate;
  return 0;
}
