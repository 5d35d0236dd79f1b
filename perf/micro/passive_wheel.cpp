// PassiveWheel. Its figures omit no cost, because no other thread does a part of its work.

#include "hashed_wheel_timer/passive_wheel.h"

#include "perf/micro/support.h"

namespace {

using namespace std::chrono_literals;
using hwt::perf::repeat;
using std::chrono::nanoseconds;
using TimePoint = std::chrono::steady_clock::time_point;

struct Node : hwt::WheelNode {
  void on_timeout() override {}
};

constexpr nanoseconds kTick = 1ms;     // the unit of the delays
constexpr std::int64_t kNear = 256;    // ticks: one level of the wheel
constexpr std::int64_t kFar = 30'000;  // two levels

/// Nodes, random delays, and a wheel for them.
class Bench {
 public:
  explicit Bench(std::int64_t nodes, std::int64_t ticks = 1)
      : nodes_(static_cast<std::size_t>(nodes)), delays_(hwt::perf::random_delays<std::chrono::milliseconds>(ticks)) {}
  explicit Bench(const benchmark::State& state) : Bench(state.range(0), state.range(1)) {}

  Node& next_node() {
    Node& node = nodes_[node_];
    node_ = hwt::perf::next_in_ring(node_, nodes_.size());
    return node;
  }
  nanoseconds next_delay() { return delays_[delay_++ % delays_.size()]; }
  void schedule_all() {
    for (Node& node : nodes_) wheel.schedule(node, next_delay());
  }

 private:
  std::vector<Node> nodes_;
  std::vector<std::chrono::milliseconds> delays_;
  std::size_t node_ = 0;
  std::size_t delay_ = 0;

 public:
  hwt::PassiveWheel wheel{kTick, TimePoint()};
  TimePoint now;
};

// Removes the oldest and schedules it again. Arguments: nodes, longest delay in ticks.
void cancel_schedule(benchmark::State& state) {
  Bench bench(state);
  repeat(state, [&] {
    Node& node = bench.next_node();
    node.cancel();
    bench.wheel.schedule(node, bench.next_delay());
  });
}
void near_and_far(hwt::perf::Benchmark* benchmark) {
  benchmark->Args({1000, kNear})->Args({1000, kFar})->Args({1'000'000, kFar});
}
BENCHMARK(cancel_schedule)->Name("passive_wheel/cancel_schedule")->Apply(near_and_far);

// Consecutive nodes go into consecutive slots. Compare with cancel_schedule, where the slots are random.
void cancel_schedule_in_order(benchmark::State& state) {
  Bench bench(1000);
  std::int64_t tick = 0;
  repeat(state, [&] {
    Node& node = bench.next_node();
    node.cancel();
    bench.wheel.schedule(node, kTick * (1 + (++tick & 255)));
  });
}
BENCHMARK(cancel_schedule_in_order)->Name("passive_wheel/cancel_schedule_in_order");

// schedule() of a scheduled node: one call instead of cancel() and schedule().
void relink(benchmark::State& state) {
  Bench bench(state);
  repeat(state, [&] { bench.wheel.schedule(bench.next_node(), bench.next_delay()); });
}
BENCHMARK(relink)->Name("passive_wheel/relink")->Apply(near_and_far);

// A keep-alive: each deadline is later than the one before.
void postpone(benchmark::State& state) {
  Bench bench(state.range(0));
  bench.schedule_all();
  nanoseconds delay = kTick;
  repeat(state, [&] { bench.wheel.postpone(bench.next_node(), ++delay); });
}
BENCHMARK(postpone)->Name("passive_wheel/postpone")->Arg(1000)->Arg(1'000'000);

// From schedule() to on_timeout(): the time of one timeout.
void expire(benchmark::State& state, auto run_all) {
  Bench bench(state);
  const auto step = [&] {
    bench.schedule_all();
    run_all(bench);
  };
  repeat(state, step, state.range(0));
}

void tick_by_tick(Bench& bench) {
  while (bench.wheel.size() > 0) bench.wheel.advance(bench.now += kTick);
}
BENCHMARK_CAPTURE(expire, tick_by_tick, tick_by_tick)
    ->Name("passive_wheel/expire")
    ->Args({1000, kNear})
    ->Args({100'000, kFar})
    ->Args({1'000'000, kFar})
    ->Unit(benchmark::kMicrosecond);

void from_wakeup_to_wakeup(Bench& bench) {
  while (const auto wakeup = bench.wheel.next_wakeup()) bench.wheel.advance(*wakeup);
}
BENCHMARK_CAPTURE(expire, from_wakeup_to_wakeup, from_wakeup_to_wakeup)
    ->Name("passive_wheel/expire_by_next_wakeup")
    ->Args({1000, kFar})
    ->Unit(benchmark::kMicrosecond);

// A tick without due timeouts.
void advance_idle(benchmark::State& state) {
  Bench bench(1);
  bench.wheel.schedule(bench.next_node(), nanoseconds::max());
  repeat(state, [&] { benchmark::DoNotOptimize(bench.wheel.advance(bench.now += kTick)); });
}
BENCHMARK(advance_idle)->Name("passive_wheel/advance_idle");

void next_wakeup(benchmark::State& state) {
  Bench bench(1);
  bench.wheel.schedule(bench.next_node(), 1h);
  repeat(state, [&] { benchmark::DoNotOptimize(bench.wheel.next_wakeup()); });
}
BENCHMARK(next_wakeup)->Name("passive_wheel/next_wakeup");

}  // namespace
