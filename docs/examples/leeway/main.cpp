#include <chrono>
#include <cstdio>
#include <ctime>
#include <latch>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/hierarchical_wheel_timer.h"

using namespace std::chrono_literals;

namespace {

/// Lets 10,000 timeouts of four threads expire within a second, and prints what that takes.
void measure(const char* name, hwt::Leeway leeway) {
  std::latch all(10'000);
  hwt::HierarchicalWheelTimer timer{1us};
  timer.start();
  const auto begin = std::chrono::steady_clock::now() + 200ms;
  const auto schedule = [&](int first) {
    for (int i = first; i < 10'000; i += 4) {
      timer.new_timeout([&all] { all.count_down(); }, begin + i * 100us, leeway);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int first = 0; first != 4; ++first) threads.emplace_back(schedule, first);
  }
  const auto before = timer.stats().wakeups;
  const std::clock_t cpu = std::clock();
  all.wait();
  const auto lateness = timer.lateness();
  const auto us = [&](double part) { return static_cast<double>(lateness.percentile(part).count()) / 1e3; };
  std::printf("%-8s %9lld %9.1f ms %9.1f us %9.1f us\n", name, static_cast<long long>(timer.stats().wakeups - before),
              1e3 * static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC, us(50), us(99));
}

}  // namespace

int main() {
  std::puts("leeway    wake-ups          CPU    late: half          99 %");
  measure("none", {});
  measure("1 ms", hwt::Leeway{1ms});
  measure("10 ms", hwt::Leeway{10ms});
  measure("100 ms", hwt::Leeway{100ms});
}
