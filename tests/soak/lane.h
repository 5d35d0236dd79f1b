#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/timer.h"
#include "perf/random.h"
#include "tests/soak/ledger.h"
#include "tests/soak/totals.h"

namespace hwt::soak {

using namespace std::chrono_literals;

struct Pending {
  Timeout timeout;
  std::uint64_t number = 0;
  bool may_expire = false;  // soon, so it need not be cancelled
};

/// Timeouts that one thread has scheduled and another one is to cancel.
class Handover {
 public:
  Handover() { box_.reserve(kMost); }
  /// False: it is full.
  bool put(Pending& pending) {
    const std::lock_guard lock(mutex_);
    if (box_.size() == kMost) return false;
    box_.push_back(std::move(pending));
    return true;
  }
  /// Leaves the room that was reserved for `into`.
  void take(std::vector<Pending>& into) {
    const std::lock_guard lock(mutex_);
    box_.swap(into);
  }

  static constexpr std::size_t kMost = 4096;

 private:
  std::mutex mutex_;
  std::vector<Pending> box_;
};

/// One thread's requests: cancels the oldest timeout of its ring and schedules a new one, again and again.
class Lane {
 public:
  /// `number`: of the lane, in its round.
  Lane(Timer& timer, Ledger& ledger, Totals& totals, std::uint64_t number, std::size_t ring, bool tracked)
      : timer_(timer),
        ledger_(ledger),
        totals_(totals),
        random_(number),
        next_(number << 40),
        tracked_(tracked),
        ring_(ring) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane() { tell(); }

  /// Some hundred operations. Some of the timeouts are left to another thread.
  void churn(int count, Handover* handover = nullptr) {
    const auto now = steady_clock::now();
    for (int i = 0; i < count; ++i) {
      Pending& place = ring_[at_];
      at_ = at_ + 1 == ring_.size() ? 0 : at_ + 1;
      if (!place.may_expire) cancel(place);
      place = schedule(now);
      if (handover != nullptr && i % 16 == 0) handover->put(place);
    }
    tell();
  }

  void cancel(Pending& pending) {
    if (std::exchange(pending.timeout, {}).cancel()) cancelled_.add(pending.number);
  }
  void cancel_all() {
    for (Pending& pending : ring_) cancel(pending);
    tell();
  }

 private:
  Pending schedule(steady_clock::time_point now) {
    const std::uint64_t choice = random_.next() % 16;
    Pending pending{{}, next_++, choice == 0};
    const auto deadline = now + (choice == 0   ? std::chrono::microseconds(random_.between(-1'000, 15'000))
                                 : choice == 1 ? std::chrono::microseconds(1h)
                                               : std::chrono::microseconds(random_.between(5'000, 1'000'000)));
    pending.timeout = tracked_ ? timer_.try_new_timeout(TrackedTask(ledger_, pending.number, deadline), deadline)
                               : timer_.try_new_timeout(QuickTask{&ledger_, pending.number, deadline}, deadline);
    (pending.timeout ? accepted_ : refused_).add(pending.number);
    return pending;
  }

  /// Adds the events since the last call to the ledger and the totals.
  void tell() {
    ledger_.accepted.add(accepted_);
    ledger_.refused.add(refused_);
    ledger_.cancelled.add(cancelled_);
    totals_.scheduled += static_cast<std::int64_t>(accepted_.count);
    totals_.refused += static_cast<std::int64_t>(refused_.count);
    totals_.cancelled += static_cast<std::int64_t>(cancelled_.count);
    accepted_ = refused_ = cancelled_ = {};
  }

  Timer& timer_;
  Ledger& ledger_;
  Totals& totals_;
  perf::Random random_;
  std::uint64_t next_;
  const bool tracked_;
  std::vector<Pending> ring_;
  std::size_t at_ = 0;
  Tally accepted_, refused_, cancelled_;
};

}  // namespace hwt::soak
