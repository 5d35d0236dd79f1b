#pragma once

#include <array>
#include <cstdint>

#include "common/common.h"
#include "common/histogram.h"
#include "hashed_wheel_timer/deadline.h"

namespace three_hops {

struct Settings {
  std::uint64_t callers = 16;
  std::uint64_t workers = 4;  // of each hop
  std::chrono::milliseconds budget{50};
  std::chrono::milliseconds work{10};  // on average
  std::chrono::milliseconds tick{1};
  std::chrono::milliseconds duration{2000};
};

inline constexpr std::size_t kHops = 3;

/// The requests as the report sees them. No hop reads the ledger: a hop knows only the budget that it received.
class Ledger {
 public:
  using Clock = std::chrono::steady_clock;

  struct Hop {
    std::int64_t arrived = 0;
    std::int64_t started = 0;
    std::int64_t not_started = 0;  // the budget ran out before
    std::int64_t stopped = 0;      // the budget ran out meanwhile
    common::Histogram left;        // of the budgets that arrive
  };

  /// Returns the number of a new request.
  std::size_t begin(hwt::Deadline deadline) {
    requests_.push_back({deadline, {}, {}});
    return requests_.size() - 1;
  }
  void sent(std::size_t request, Clock::time_point now) { requests_[request].sent = now; }
  void arrived(std::size_t request, Hop& hop, hwt::Deadline deadline, Clock::time_point now) {
    requests_[request].on_the_way += now - requests_[request].sent;
    hop.left.record(deadline.remaining(now));
    ++hop.arrived;
  }
  void started(std::size_t request, Hop& hop, Clock::time_point now) {
    const Request& of = requests_[request];
    ++hop.started;
    latest_start_ = std::max(latest_start_, now - of.deadline.time());
    // A hop counts the budget from the arrival of the request, because the text does not say when it was sent. So the
    // hop may start work later than the caller's deadline, by the time that the request was on the way.
    if (now - of.deadline.time() >= of.on_the_way) ++started_late_;
  }
  void not_started(Hop& hop, Clock::duration work) {
    ++hop.not_started;
    saved_ += work;
  }

  std::int64_t requests() const { return static_cast<std::int64_t>(requests_.size()); }
  Clock::duration saved() const { return saved_; }
  Clock::duration latest_start() const { return latest_start_; }
  std::int64_t started_late() const { return started_late_; }

  std::int64_t answered = 0;
  std::int64_t timed_out = 0;
  std::array<Hop, kHops> hops;

 private:
  struct Request {
    hwt::Deadline deadline;        // the caller's
    Clock::time_point sent;        // to the hop where it is
    Clock::duration on_the_way{};  // between hops, so far
  };

  std::vector<Request> requests_;
  Clock::duration saved_{};
  Clock::duration latest_start_ = Clock::duration::min();  // after the caller's deadline
  std::int64_t started_late_ = 0;
};

}  // namespace three_hops
