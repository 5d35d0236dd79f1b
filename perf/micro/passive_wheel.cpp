// PassiveWheel: everything is on one thread, so these are all its costs.

#include "hashed_wheel_timer/passive_wheel.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "perf/micro/random.h"
#include "perf/micro/support.h"

namespace {

using namespace std::chrono_literals;
using hwt::perf::count;
using std::chrono::nanoseconds;
using TimePoint = std::chrono::steady_clock::time_point;

struct Node : hwt::WheelNode {
  void on_timeout() override {}
};

constexpr nanoseconds kTick = 1ms;
constexpr std::int64_t kNear = 256;    // ticks: one level of the wheel
constexpr std::int64_t kFar = 30'000;  // two

/// Nodes in turn, and delays of up to so many ticks in random order; their number is a power of two.
class Ring {
 public:
  Ring(std::int64_t nodes, std::int64_t ticks) : nodes_(static_cast<std::size_t>(nodes)), delays_(4096) {
    hwt::perf::Random random(1);
    for (nanoseconds& delay : delays_) delay = kTick * random.between(1, ticks);
  }
  Node& next_node() {
    Node& node = nodes_[node_];
    node_ = node_ + 1 == nodes_.size() ? 0 : node_ + 1;
    return node;
  }
  nanoseconds next_delay() { return delays_[delay_++ % delays_.size()]; }
  std::vector<Node>& nodes() { return nodes_; }

 private:
  std::vector<Node> nodes_;
  std::vector<nanoseconds> delays_;
  std::size_t node_ = 0;
  std::size_t delay_ = 0;
};

// Takes the oldest out and puts it in again. Arguments: nodes, longest delay in ticks.
void cancel_schedule(benchmark::State& state) {
  Ring ring(state.range(0), state.range(1));
  hwt::PassiveWheel wheel(kTick, TimePoint());
  for (auto _ : state) {
    Node& node = ring.next_node();
    node.cancel();
    wheel.schedule(node, ring.next_delay());
  }
  count(state, state.iterations());
}
BENCHMARK(cancel_schedule)
    ->Name("passive_wheel/cancel_schedule")
    ->Args({1000, kNear})
    ->Args({1000, kFar})
    ->Args({1'000'000, kFar});

// The same with a slot to each node in turn: what order is worth.
void cancel_schedule_in_order(benchmark::State& state) {
  Ring ring(1000, 1);
  hwt::PassiveWheel wheel(kTick, TimePoint());
  std::int64_t tick = 0;
  for (auto _ : state) {
    Node& node = ring.next_node();
    node.cancel();
    wheel.schedule(node, kTick * (1 + (++tick & 255)));
  }
  count(state, state.iterations());
}
BENCHMARK(cancel_schedule_in_order)->Name("passive_wheel/cancel_schedule_in_order");

// One call instead of two.
void relink(benchmark::State& state) {
  Ring ring(state.range(0), state.range(1));
  hwt::PassiveWheel wheel(kTick, TimePoint());
  for (auto _ : state) wheel.schedule(ring.next_node(), ring.next_delay());
  count(state, state.iterations());
}
BENCHMARK(relink)->Name("passive_wheel/relink")->Args({1000, kNear})->Args({1000, kFar})->Args({1'000'000, kFar});

// A keep-alive: every time later than before.
void postpone(benchmark::State& state) {
  Ring ring(state.range(0), 1);
  hwt::PassiveWheel wheel(kTick, TimePoint());
  for (Node& node : ring.nodes()) wheel.schedule(node, kTick);
  nanoseconds delay = kTick;
  for (auto _ : state) wheel.postpone(ring.next_node(), ++delay);
  count(state, state.iterations());
}
BENCHMARK(postpone)->Name("passive_wheel/postpone")->Arg(1000)->Arg(1'000'000);

// From schedule() to on_timeout(), time going on tick by tick: the share of a timeout in all of it.
void expire(benchmark::State& state) {
  Ring ring(state.range(0), state.range(1));
  hwt::PassiveWheel wheel(kTick, TimePoint());
  TimePoint now;
  for (auto _ : state) {
    for (Node& node : ring.nodes()) wheel.schedule(node, ring.next_delay());
    while (wheel.size() > 0) wheel.advance(now += kTick);
  }
  count(state, state.iterations() * state.range(0));
}
BENCHMARK(expire)
    ->Name("passive_wheel/expire")
    ->Args({1000, kNear})
    ->Args({100'000, kFar})
    ->Args({1'000'000, kFar})
    ->Unit(benchmark::kMicrosecond);

// The same, from wake-up to wake-up.
void expire_by_next_wakeup(benchmark::State& state) {
  Ring ring(state.range(0), state.range(1));
  hwt::PassiveWheel wheel(kTick, TimePoint());
  for (auto _ : state) {
    for (Node& node : ring.nodes()) wheel.schedule(node, ring.next_delay());
    while (const auto wakeup = wheel.next_wakeup()) wheel.advance(*wakeup);
  }
  count(state, state.iterations() * state.range(0));
}
BENCHMARK(expire_by_next_wakeup)
    ->Name("passive_wheel/expire_by_next_wakeup")
    ->Args({1000, kFar})
    ->Unit(benchmark::kMicrosecond);

// A tick in which nothing is due.
void advance_idle(benchmark::State& state) {
  Node node;
  hwt::PassiveWheel wheel(kTick, TimePoint());
  wheel.schedule(node, nanoseconds::max());
  TimePoint now;
  for (auto _ : state) benchmark::DoNotOptimize(wheel.advance(now += kTick));
  count(state, state.iterations());
}
BENCHMARK(advance_idle)->Name("passive_wheel/advance_idle");

void next_wakeup(benchmark::State& state) {
  Node node;
  hwt::PassiveWheel wheel(kTick, TimePoint());
  wheel.schedule(node, 1h);
  for (auto _ : state) benchmark::DoNotOptimize(wheel.next_wakeup());
  count(state, state.iterations());
}
BENCHMARK(next_wakeup)->Name("passive_wheel/next_wakeup");

}  // namespace
