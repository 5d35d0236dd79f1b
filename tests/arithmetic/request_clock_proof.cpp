// Proofs for the request clock's conversion of cycles at every rate of 1/16 to 64 ns per cycle. It does not overflow,
// does not exceed its window, and does not go back.

#include "hashed_wheel_timer/internal/time/request_clock.h"
#include "tests/arithmetic/whole.h"

namespace {

using namespace hwt::arithmetic;
using hwt::internal::CycleRate;

using Word = Whole<64, false>;

constexpr std::uint64_t kUnit = std::uint64_t{1} << 32;  // the rate of a nanosecond per cycle; see CycleRate::get()

Word any_rate() { return any<Word>("rate", kUnit / 16, kUnit * 64); }
Word any_cycles(const char* name, const Word& rate) {
  const Word cycles(name);
  assume(cycles < CycleRate::window_of(rate));
  return cycles;
}

}  // namespace

int main(int count, char** arguments) {
  Proof proof(count, arguments);

  proof.lemma("clock_conversion", [] {
    const Word rate = any_rate();
    const Word cycles = any_cycles("cycles", rate);
    const Word estimate = CycleRate::nanoseconds_of(cycles, rate);
    const z3::expr product = cycles.expr() * rate.expr();
    const z3::expr unit = Word(kUnit).expr();
    require(estimate < Word(CycleRate::kWindow), "never beyond the window");
    require(Bit(estimate.expr() * unit <= product), "never above the exact time");
    require(Bit((estimate.expr() + 1) * unit > product), "less than a nanosecond below the exact time: nothing wraps");
    // Both together: the exact time is rounded down. So the estimate does not go back when the cycles rise.
  });
  proof.lemma("clock_window", [] {
    const Word rate = any_rate();
    const Word window = CycleRate::window_of(rate);
    require(window >= std::uint64_t(CycleRate::kWindow) / 64, "long enough to be of use");
    require(CycleRate::nanoseconds_of(window, rate) <= Word(CycleRate::kWindow),
            "a whole window lasts at most kWindow");
  });
  proof.lemma("clock_error", [] {
    const Word rate = any_rate();
    const Word cycles = any_cycles("cycles", rate);
    const Word passed("passed");  // ns by the clock, while the counter has counted `cycles`
    assume(Bit(cycles.expr() * rate.expr() * 2 >= passed.expr() * Word(kUnit).expr()));  // half the rate or faster
    const Word estimate = CycleRate::nanoseconds_of(cycles, rate);
    require(Bit(passed.expr() <= estimate.expr() + Word(std::uint64_t(CycleRate::kWindow + CycleRate::kSlack)).expr()),
            "too early by at most a window; CycleRate adds kSlack to each estimate");
  });
  return proof.result();
}
