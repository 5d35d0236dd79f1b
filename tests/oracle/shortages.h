#pragma once

#include <cstdint>
#include <optional>

#include "perf/random.h"
#include "tests/oracle/totals.h"
#include "tests/support/allocation_hook.h"

namespace hwt::oracle {

/// Lets a few of this thread's next allocations fail, while it lives.
class RandomShortage {
 public:
  RandomShortage(Totals& totals, perf::Random& random, std::int64_t most_pass)
      : totals_(totals), shortage_(random.between(0, most_pass), random.between(1, 8)) {}
  ~RandomShortage() { totals_.failed_allocations += shortage_.failed(); }
  RandomShortage(const RandomShortage&) = delete;
  RandomShortage& operator=(const RandomShortage&) = delete;

 private:
  Totals& totals_;
  test::Shortage shortage_;
};

/// Lets allocations of the calling thread fail, until its next call or its end. A task calls it to strike the worker.
inline void strike_this_thread(Totals& totals, perf::Random& random) {
  thread_local std::optional<RandomShortage> shortage;
  shortage.reset();
  shortage.emplace(totals, random, 20);
}

}  // namespace hwt::oracle
