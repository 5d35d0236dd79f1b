#pragma once

#include <cstdint>
#include <functional>
#include <iostream>
#include <string>
#include <utility>

#include "perf/random.h"

namespace hwt::simulation {

/// What all parts of a simulation share: chance, the trace, and the first thing that went wrong.
class World {
 public:
  World(std::uint64_t seed, bool traced) : random_(seed), traced_(traced) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  std::uint64_t below(std::uint64_t limit) { return random_.next() % limit; }
  std::int64_t between(std::int64_t low, std::int64_t high) { return random_.between(low, high); }
  bool one_in(std::uint64_t count) { return below(count) == 0; }

  /// The simulated thread calls this before and after each call of the timer, because another thread may come between
  /// them. A WatchedScope does not: its user does, around calls after which it looks at its state again.
  void pause() {
    if (interleave) interleave();
  }
  std::function<void()> interleave;

  /// A line of the trace, deeper where it happens within another step.
  template <class... Parts>
  void trace(const Parts&... parts) {
    if (!traced_) return;
    std::cout << std::string(2 * depth + 2, ' ');
    (std::cout << ... << parts) << '\n';
  }
  std::size_t depth = 0;

  void expect(bool condition, const char* promise) {
    if (condition || failed()) return;
    broken_ = promise;
    trace("BROKEN: ", promise);
  }
  bool failed() const { return broken_ != nullptr; }
  /// Null: none.
  const char* broken() const { return broken_; }

 private:
  perf::Random random_;
  const bool traced_;
  const char* broken_ = nullptr;
};

}  // namespace hwt::simulation
