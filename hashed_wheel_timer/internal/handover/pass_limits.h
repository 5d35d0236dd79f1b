#pragma once

#include <cstddef>

namespace hwt::internal {

/// The bounds for one pass of the worker over the inbox.
struct PassLimits {
  /// Netty's bound: a flood of new timeouts must not keep the worker from expiring. Dead entries count as well.
  static constexpr std::size_t kTransfers = 100'000;
  /// The bound for entries of places in which nothing is due soon. They take half a millisecond.
  static constexpr std::size_t kFar = 8192;
  /// The bound for recheck requests, each of which touches two cold places in memory.
  static constexpr std::size_t kRechecks = 8192;
  /// A round of turns of all places takes half of a pass at most, so that each place has a turn in each pass.
  static constexpr std::size_t kRound = kTransfers / 2;
  static constexpr std::size_t kRecheckRound = kRechecks / 2;
};

}  // namespace hwt::internal
