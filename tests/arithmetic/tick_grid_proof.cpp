// Where ticks begin and end, for every start, tick duration and time.

#include "hashed_wheel_timer/internal/core/tick_grid.h"
#include "tests/arithmetic/bits.h"
#include "tests/arithmetic/whole.h"

namespace {

using namespace hwt::arithmetic;
using hwt::internal::kForever;
using hwt::internal::kNever;

using Time = Whole<64, true>;
using Grid = hwt::internal::BasicTickGrid<Time, Whole<64, false>>;

Grid any_grid() { return {Time("start"), any<Time>("tick_duration", 1, kForever)}; }
Time any_tick(const char* name) { return any<Time>(name, 0, kNever - 1); }

}  // namespace

int main(int count, char** arguments) {
  Proof proof(count, arguments);

  proof.lemma("grid_never_early", [] {
    const Grid grid = any_grid();
    const Time deadline("deadline");
    require(grid.end_of(grid.due_tick(deadline)) >= deadline, "its tick ends at its deadline or later");
  });
  proof.lemma("grid_at_most_a_tick_late", [] {
    const Grid grid = any_grid();
    const Time deadline("deadline");
    const Time tick = grid.due_tick(deadline);
    require(tick >= 0 && tick < kNever, "its tick exists");
    if (tick > 0) require(grid.end_of(tick - 1) < deadline, "the tick before ends earlier");
  });
  proof.lemma("grid_order", [] {
    const Grid grid = any_grid();
    const Time tick = any<Time>("tick", 0, kNever - 2);
    const Time begin = grid.begin_of(tick);
    const Time end = grid.end_of(tick);
    require(begin >= grid.start, "no tick begins before the start");
    require(begin < end || end == kForever, "it ends after it begins");
    require(end == grid.begin_of(tick + 1), "the next one begins there");
  });
  proof.lemma("grid_at", [] {
    const Grid grid = any_grid();
    const Time time("time");
    assume(time >= grid.start);
    const Time tick = grid.at(time);
    require(tick >= 0 && tick < kNever, "its tick exists");
    require(grid.begin_of(tick) <= time, "it has begun");
    require(time < grid.end_of(tick) || grid.end_of(tick) == kForever, "it has not ended");
  });
  // Of any tick that roundest_of() may return.
  proof.lemma("grid_leeway", [] {
    const Grid grid = any_grid();
    const Time earliest("earliest");
    const Time latest = any<Time>("latest", 0 - kForever - 1, kForever - 1);
    const Time tick = any_tick("tick");
    assume(tick >= grid.due_tick(earliest));
    assume(tick < grid.at(latest));
    require(grid.end_of(tick) >= earliest, "never early");
    require(grid.end_of(tick) <= latest, "within the leeway");
  });
  proof.lemma("grid_roundest", [] {
    using Tick = Bits<64, false>;
    using Ticks = hwt::internal::BasicTickGrid<Bits<64, true>, Tick>;
    const Tick first = any<Tick>("first", 0, kNever - 1);
    const Tick end = any<Tick>("end", 1, kNever - 1);
    assume(first < end);
    const Tick roundest = Ticks::roundest_of(first, end);
    require(roundest >= first, "not before the first");
    require(roundest < end, "before the end");
    const Tick other = any<Tick>("other", 0, kNever - 1);
    assume(other >= first);
    assume(other < end);
    const auto lowest_bit = [](const Tick& tick) { return tick & (~tick + 1); };
    // 0 has none, and is the roundest of all: less 1, it is the largest.
    require(lowest_bit(other) - 1 <= lowest_bit(roundest) - 1, "no other ends in more zero bits");
  });
  return proof.result();
}
