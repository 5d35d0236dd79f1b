// The wheels alone: no threads, clock or tasks.

#include "hashed_wheel_timer/internal/wheel/hashed_wheel.h"
#include "hashed_wheel_timer/internal/wheel/hierarchical_wheel.h"
#include "perf/micro/support.h"

namespace {

using hwt::internal::HashedWheel;
using hwt::internal::HierarchicalWheel;
using hwt::internal::Tick;
using hwt::internal::Verdict;
using hwt::internal::WheelItem;
using hwt::perf::count;
using hwt::perf::random_delays;
using hwt::perf::repeat;

struct alignas(hwt::internal::kCacheLine) Item : WheelItem {
  Tick due = 0;
};

// The defaults of ticks_per_wheel in the two timers.
template <class Wheel>
constexpr std::int64_t kSize = 512;
template <>
constexpr std::int64_t kSize<HierarchicalWheel> = 64;

void insert(auto& wheel, WheelItem& item, Tick due) {
  static_cast<Item&>(item).due = due;
  wheel.insert(item, due);
}

// Takes a due item. Any other item comes again at its tick.
Verdict answer(const WheelItem& item, Tick now) {
  const Tick due = static_cast<const Item&>(item).due;
  return due > now ? Verdict::later(due) : Verdict::taken();
}

// Removes the oldest item of a ring and inserts it again at ticks(), again and again.
template <class Wheel>
void insert_remove(benchmark::State& state, std::int64_t size, auto ticks) {
  std::vector<Item> items(static_cast<std::size_t>(size));
  Wheel wheel(kSize<Wheel>);
  std::size_t next = 0;
  repeat(state, [&] {
    if (items[next].position != nullptr) wheel.remove(items[next]);
    wheel.insert(items[next], ticks());
    next = hwt::perf::next_in_ring(next, items.size());
  });
  wheel.clear([](WheelItem&) {});
}

// The argument is the size of the ring.
template <class Wheel>
void at_random(benchmark::State& state) {
  insert_remove<Wheel>(state, state.range(0), [delays = random_delays<Tick>(256), turn = std::size_t{0}]() mutable {
    return delays[turn++ % delays.size()];
  });
}
BENCHMARK(at_random<HashedWheel>)->Name("wheel/insert_remove")->Arg(1000)->Arg(1'000'000);
BENCHMARK(at_random<HierarchicalWheel>)->Name("hierarchical_wheel/insert_remove")->Arg(1000)->Arg(1'000'000);

// The next item goes into the next bucket. Compare with at_random: the difference is the cost of random access.
template <class Wheel>
void in_order(benchmark::State& state) {
  insert_remove<Wheel>(state, 1000, [tick = Tick{0}]() mutable { return ++tick & 255; });
}
BENCHMARK(in_order<HashedWheel>)->Name("wheel/insert_remove_in_order");
BENCHMARK(in_order<HierarchicalWheel>)->Name("hierarchical_wheel/insert_remove_in_order");

// Every item expires once and is inserted again at random.
template <class Wheel>
void insert_expire(benchmark::State& state) {
  const std::vector<Tick> delays = random_delays<Tick>(256);
  std::vector<Item> items(static_cast<std::size_t>(state.range(0)));
  Wheel wheel(kSize<Wheel>);
  std::vector<WheelItem*> expired;
  expired.reserve(items.size());
  for (Item& item : items) expired.push_back(&item);
  Tick now = 0;
  std::size_t turn = 0;
  std::int64_t inserted = 0;
  for (auto _ : state) {
    for (WheelItem* const item : expired) insert(wheel, *item, now + delays[turn++ % delays.size()]);
    inserted += static_cast<std::int64_t>(expired.size());
    expired.clear();
    now = wheel.next_due();
    wheel.expire(now, [&expired, now](WheelItem& item) {
      const Verdict verdict = answer(item, now);
      if (verdict.is_taken()) expired.push_back(&item);
      return verdict;
    });
  }
  wheel.clear([](WheelItem&) {});
  count(state, inserted);
}
BENCHMARK(insert_expire<HashedWheel>)->Name("wheel/insert_expire")->Arg(1000)->Arg(1'000'000);
BENCHMARK(insert_expire<HierarchicalWheel>)->Name("hierarchical_wheel/insert_expire")->Arg(1000)->Arg(1'000'000);

// Items that are far away, until they expire. A hashed wheel walks over them in each revolution; in a hierarchy they
// move down.
template <class Wheel>
void expire_far(benchmark::State& state) {
  std::vector<Item> items(static_cast<std::size_t>(state.range(0)));
  hwt::perf::Random random(1);
  Wheel wheel(kSize<Wheel>);
  Tick now = 0;
  const auto step = [&] {
    for (Item& item : items) insert(wheel, item, now + random.between(1, state.range(0)));
    for (Tick due = wheel.next_due(); due != hwt::internal::kNever; due = wheel.next_due()) {
      now = due;
      wheel.expire(now, [now](WheelItem& item) { return answer(item, now); });
    }
  };
  repeat(state, step, state.range(0));
}
BENCHMARK(expire_far<HashedWheel>)->Name("wheel/expire_far")->Arg(100'000);
BENCHMARK(expire_far<HierarchicalWheel>)->Name("hierarchical_wheel/expire_far")->Arg(100'000);

template <class Wheel>
void next_due(benchmark::State& state) {
  Wheel wheel(kSize<Wheel>);
  Item item;
  wheel.insert(item, 100);
  repeat(state, [&] { benchmark::DoNotOptimize(wheel.next_due()); });
  wheel.clear([](WheelItem&) {});
}
BENCHMARK(next_due<HashedWheel>)->Name("wheel/next_due");
BENCHMARK(next_due<HierarchicalWheel>)->Name("hierarchical_wheel/next_due");

}  // namespace
