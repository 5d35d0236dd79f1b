// The wheel by itself: no threads, no clock, no tasks.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "hashed_wheel_timer/internal/hashed_wheel.h"
#include "perf/micro/random.h"
#include "perf/micro/support.h"

namespace {

using hwt::internal::HashedWheel;
using hwt::internal::Tick;
using hwt::internal::WheelItem;
using hwt::perf::count;

struct alignas(hwt::internal::kCacheLine) Item : WheelItem {};

constexpr std::int64_t kBuckets = 512;

// Delays of 1 to 256 ticks in random order; their number is a power of two.
std::vector<Tick> random_delays() {
  std::vector<Tick> delays(4096);
  hwt::perf::Random random(1);
  for (Tick& delay : delays) delay = random.between(1, 256);
  return delays;
}

// A ring of items: takes the oldest out and puts it in again. The argument is the size of the ring.
void insert_remove(benchmark::State& state) {
  const std::vector<Tick> delays = random_delays();
  std::vector<Item> items(static_cast<std::size_t>(state.range(0)));
  HashedWheel wheel(kBuckets);
  std::size_t next = 0;
  std::size_t turn = 0;
  for (auto _ : state) {
    if (items[next].position != nullptr) wheel.remove(items[next]);
    wheel.insert(items[next], delays[turn++ % delays.size()]);
    next = next + 1 == items.size() ? 0 : next + 1;
  }
  wheel.clear([](WheelItem&) {});
  count(state, state.iterations());
}
BENCHMARK(insert_remove)->Name("wheel/insert_remove")->Arg(1000)->Arg(1'000'000);

// The same with a bucket to each item in turn: what order is worth.
void insert_remove_in_order(benchmark::State& state) {
  std::vector<Item> items(1000);
  HashedWheel wheel(kBuckets);
  std::size_t next = 0;
  Tick tick = 0;
  for (auto _ : state) {
    if (items[next].position != nullptr) wheel.remove(items[next]);
    wheel.insert(items[next], ++tick & 255);
    next = next + 1 == items.size() ? 0 : next + 1;
  }
  wheel.clear([](WheelItem&) {});
  count(state, state.iterations());
}
BENCHMARK(insert_remove_in_order)->Name("wheel/insert_remove_in_order");

// Every item expires once and is put in again at random.
void insert_expire(benchmark::State& state) {
  const std::vector<Tick> delays = random_delays();
  std::vector<Item> items(static_cast<std::size_t>(state.range(0)));
  HashedWheel wheel(kBuckets);
  std::vector<WheelItem*> expired;
  expired.reserve(items.size());
  for (Item& item : items) expired.push_back(&item);
  Tick now = 0;
  std::size_t turn = 0;
  std::int64_t inserted = 0;
  for (auto _ : state) {
    for (WheelItem* const item : expired) wheel.insert(*item, now + delays[turn++ % delays.size()]);
    inserted += static_cast<std::int64_t>(expired.size());
    expired.clear();
    now = wheel.next_due();
    wheel.expire(now, [&expired](WheelItem& item) {
      expired.push_back(&item);
      return HashedWheel::kTaken;
    });
  }
  wheel.clear([](WheelItem&) {});
  count(state, inserted);
}
BENCHMARK(insert_expire)->Name("wheel/insert_expire")->Arg(1000)->Arg(1'000'000);

void next_due(benchmark::State& state) {
  HashedWheel wheel(kBuckets);
  Item item;
  wheel.insert(item, 100);
  for (auto _ : state) benchmark::DoNotOptimize(wheel.next_due());
  wheel.clear([](WheelItem&) {});
  count(state, state.iterations());
}
BENCHMARK(next_due)->Name("wheel/next_due");

}  // namespace
