#pragma once

#include <cstdint>

namespace hwt::simulation {

/// What one seed came to.
struct Result {
  const char* broken = nullptr;  // the first promise that was broken; null: none
  std::int64_t steps = 0;
  std::int64_t requests = 0;
};

/// The life of an RPC client: a seed decides what happens next, at each step and between any two calls of the timer. A
/// seed leads to the same events each time; `traced`, it tells each step.
Result simulate(std::uint64_t seed, bool traced);

}  // namespace hwt::simulation
