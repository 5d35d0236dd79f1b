#include <algorithm>
#include <chrono>
#include <cstdio>
#include <latch>
#include <vector>

#include "hashed_wheel_timer/hierarchical_wheel_timer.h"

int main() {
  std::vector<double> late;  // in us; only the worker writes until all have run
  std::latch all(1000);
  hwt::HierarchicalWheelTimer timer{std::chrono::microseconds(10)};
  const auto note = [&](hwt::Timeout& self) {
    const auto since = std::chrono::steady_clock::now() - self.deadline();
    late.push_back(std::chrono::duration<double, std::micro>(since).count());
    all.count_down();
  };
  for (int i = 1; i <= 1000; ++i) timer.new_timeout(note, i * std::chrono::microseconds(200));
  all.wait();
  std::sort(late.begin(), late.end());
  std::printf("late: %.1f us at least, half by %.1f, 99 %% by %.1f\n", late.front(), late[499], late[989]);
}
