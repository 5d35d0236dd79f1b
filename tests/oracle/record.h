#pragma once

// What happened to one timeout: by its users' calls, and by its task. This header includes what all rounds need of the
// standard library.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/timeout.h"
#include "hashed_wheel_timer/timeout_id.h"

namespace hwt::oracle {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;
using TimePoint = steady_clock::time_point;

/// An event in the history of a timeout.
enum class Act : std::uint8_t {
  Schedules,
  Accepted,
  Refused,
  Cancels,
  CancelsAndWaits,
  Cancelled,
  CancelledTooLate,
  MovesEarlier,
  MovesLater,
  Moved,
  MovedTooLate,
  Starts,
  Ends,
  Told,
  Returned,
  Destroyed,
};
inline constexpr const char* kActs[] = {"schedules it",         "was accepted",
                                        "was refused",          "cancels it",
                                        "cancels it and waits", "has cancelled it",
                                        "cancelled too late",   "moves it earlier",
                                        "moves it later",       "has moved it",
                                        "moved too late",       "starts its task",
                                        "ends its task",        "is told that it will not run",
                                        "got it from stop()",   "destroys the last copy of its callable"};

/// The use that a task makes of its timer.
enum class Plan : std::uint8_t { Nothing, Throws, Schedules, Cancels, Moves, Stops, Strikes, Sleeps, kPlans };

/// The number of this thread in a history.
inline constinit thread_local std::uint8_t thread_number = 0;

/// A timeout and its life. The owner is the thread that schedules it.
struct alignas(64) Record {
  // By the owner, before it schedules.
  bool by_handle = false, is_shared_task = false;
  bool is_trivial = false;  // its callable, so nothing counts the copies
  bool is_open = false;     // other threads may cancel and move it too
  bool is_far = false;      // was due in an hour when it was scheduled
  bool elsewhere = false;   // runs on an executor of its own
  Plan plan = Plan::Nothing;
  std::uint8_t stream = 0;  // of Ledger, for which `order` counts from 1; 0: it has no order
  std::uint32_t order = 0;

  // By the owner, after it has scheduled.
  bool accepted = false;
  std::atomic<std::uint64_t> id{0};  // release: other threads then see the members above
  Timeout handle;

  // The ends. Each is counted, so that a second one shows.
  std::atomic<std::uint8_t> runs{0}, cancels{0};
  std::atomic<std::uint8_t> returned{0};  // by stop()
  std::atomic<std::uint8_t> told{0};      // TimerTask::cancelled()

  std::atomic<bool> running{false};
  std::atomic<bool> joined{false};          // cancel_and_wait() has returned
  std::atomic<std::int16_t> copies{0};      // of its callable, that exist
  std::atomic<std::int64_t> not_before{0};  // by the clock of the timer
  std::atomic<std::int64_t> started{0};

  void note(Act act) noexcept {
    const std::uint16_t number = noted_.fetch_add(1, std::memory_order_relaxed);
    const auto passed = static_cast<std::uint64_t>((steady_clock::now() - began).count());
    acts_[number < kFirst ? number : kFirst + (number - kFirst) % kLast].store(
        passed << 16 | std::uint64_t{thread_number} << 8 | static_cast<std::uint64_t>(act), std::memory_order_relaxed);
  }
  bool has_ended() const noexcept { return runs + cancels + returned != 0; }

  void print() const {
    std::printf("its history, in us of the round, the first %d and the last %d events of %d:\n", kFirst, kLast,
                static_cast<int>(noted_));
    for (unsigned i = 0; i < noted_ && i < acts_.size(); ++i) {
      const std::uint64_t act = acts_[i < kFirst ? i : kFirst + oldest(i)];
      std::printf("  %12.3f  thread %2d %s\n", static_cast<double>(act >> 16) / 1e3, static_cast<int>(act >> 8 & 0xff),
                  kActs[act & 0xff]);
    }
    const auto time = [](std::int64_t at) { return static_cast<double>(at - began.time_since_epoch().count()) / 1e3; };
    std::printf("due at %.3f, started at %.3f; runs %d, cancels %d, returned %d, told %d, copies %d, plan %d\n",
                time(not_before), time(started), runs.load(), cancels.load(), returned.load(), told.load(),
                copies.load(), static_cast<int>(plan));
  }

  static inline TimePoint began;  // of the round

 private:
  static constexpr int kFirst = 4, kLast = 8;

  /// The index of the i-th event in the ring of the last ones.
  unsigned oldest(unsigned i) const {
    const unsigned later = noted_ > kFirst + kLast ? noted_ - kFirst - kLast : 0;
    return (i - kFirst + later) % kLast;
  }

  std::atomic<std::uint16_t> noted_{0};
  std::array<std::atomic<std::uint64_t>, kFirst + kLast> acts_{};
};

}  // namespace hwt::oracle
