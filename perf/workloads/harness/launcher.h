#pragma once

#include <chrono>
#include <cstdint>

#include "harness/fired.h"
#include "harness/ring.h"
#include "harness/splitmix64.h"

namespace perf {

/// Schedules timeouts whose handles nobody keeps, with delays at random in [low, high].
template <class Timer, class Unit>
class alignas(kCacheLine) Launcher {
 public:
  Launcher(Timer& timer, Fired& fired, int t, std::uint64_t seed, Unit low, Unit high)
      : timer_(timer),
        fired_(fired),
        low_(low),
        high_(high),
        random_(seed + static_cast<std::uint64_t>(t)),
        last_id_(first_id(t)) {}

  void run(std::int64_t n) {
    for (; n > 0; --n) timer_.launch(fired_, ++last_id_, Unit(random_.between(low_.count(), high_.count())));
  }

 private:
  Timer& timer_;
  Fired& fired_;
  Unit low_;
  Unit high_;
  SplitMix64 random_;
  std::uint64_t last_id_;
};

}  // namespace perf
