#include <cstdio>
#include <latch>

#include "hashed_wheel_timer/hashed_wheel_timer.h"

int main() {
  std::latch done(1);
  hwt::HashedWheelTimer timer{std::chrono::milliseconds(10)};  // 10 ms ticks; share one timer per process
  hwt::Timeout first = timer.new_timeout([] { std::puts("request 1 timed out"); }, std::chrono::seconds(1));
  if (first.cancel()) std::puts("request 1 answered");  // true: the task has not run and never will
  timer.new_timeout([&] { done.count_down(); }, std::chrono::milliseconds(50));
  done.wait();
  std::puts("request 2 timed out");
}
