// The header and the library in C++11.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "hashed_wheel_timer/c.h"

int main() {
  hwt_options options;
  hwt_options_init(&options);
  options.tick_ns = 1000000;
  hwt_timer* timer = nullptr;
  if (hwt_create(&options, &timer) != 0) return 1;
  std::atomic<int> ran(0);
  const hwt_id cancelled =
      hwt_add(timer, HWT_NEVER, [](void* argument) { *static_cast<std::atomic<int>*>(argument) = 2; }, &ran);
  const bool won = hwt_cancel(timer, cancelled) == 0;
  hwt_add(timer, 20000000, [](void* argument) { ++*static_cast<std::atomic<int>*>(argument); }, &ran);
  while (ran == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  hwt_destroy(timer);
  const bool good = won && ran == 1;
  std::puts(good ? "good" : "wrong");
  return good ? 0 : 1;
}
