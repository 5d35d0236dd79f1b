#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "perf/workloads/fired.h"
#include "perf/workloads/producers.h"

namespace hwt::perf {

/// A client at a steady rate: it schedules 100 timeouts of 300 s each millisecond, until there were `count`. It cancels
/// each after the next `pending` ones, except one of a thousand. With `due_ms`, another timeout is due at that
/// interval. Measures the growth of the memory while `pending` timeouts are in flight.
template <class Timer>
Json measure_rate(const Options& options) {
  using std::chrono::milliseconds;
  constexpr std::chrono::seconds kTimeout{300};
  constexpr std::uint64_t kEachMillisecond = 100;
  constexpr std::uint64_t kOneOf = 1000;
  Fired fired;
  Timer timer(options.tick());
  const auto pending = static_cast<std::size_t>(options.pending);
  auto slots = timer.make_slots(pending);
  const std::int64_t before = resident_bytes();
  const std::chrono::nanoseconds cpu_before = process_cpu_time();
  const auto begin = std::chrono::steady_clock::now();
  const auto count = static_cast<std::uint64_t>(options.count);
  std::uint64_t id = 0;
  std::int64_t millisecond = 0;
  run_every(timer, milliseconds(1), [&] {
    for (const std::uint64_t end = std::min(id + kEachMillisecond, count); id < end; ++id) {
      auto& slot = slots[id % pending];
      timer.cancel(slot);
      id % kOneOf == 0 ? timer.launch(fired, id, kTimeout) : timer.schedule(slot, fired, id, kTimeout);
    }
    if (options.due_ms != 0 && millisecond++ % options.due_ms == 0) {
      timer.launch(fired, 0, milliseconds(options.due_ms));
    }
    return id < count;
  });
  const std::chrono::duration<double, std::milli> cpu = process_cpu_time() - cpu_before;
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  const std::int64_t bytes = resident_bytes() - before;
  timer.stop();
  constexpr double kMiB = 1 << 20;
  return {{"kept_mib", static_cast<double>(bytes) / kMiB}, {"cpu_ms_per_s", cpu.count() / wall.count()}};
}

}  // namespace hwt::perf
