#pragma once

// What became of each timeout of a round. Timeouts have numbers. For each way in which a timeout can end, the numbers
// are added up. That is cheap enough for every operation, and shows when one ended twice and another never.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>

#include "tests/soak/executor.h"

namespace hwt::soak {

using std::chrono::steady_clock;

/// How many numbers were added, their sum, and the sum of their squares. Two tallies differ if one or two of their
/// numbers differ.
struct Tally {
  std::uint64_t count = 0;
  std::uint64_t sum = 0;
  std::uint64_t squares = 0;

  void add(std::uint64_t number) noexcept { *this += {1, number, number * number}; }
  Tally& operator+=(const Tally& other) noexcept {
    count += other.count;
    sum += other.sum;
    squares += other.squares;
    return *this;
  }
  Tally operator-(const Tally& other) const noexcept {
    return {count - other.count, sum - other.sum, squares - other.squares};
  }
  bool operator==(const Tally&) const = default;
};

/// One that all threads add to. relaxed: it is read when they have been joined.
class SharedTally {
 public:
  void add(const Tally& tally) noexcept {
    count_.fetch_add(tally.count, std::memory_order_relaxed);
    sum_.fetch_add(tally.sum, std::memory_order_relaxed);
    squares_.fetch_add(tally.squares, std::memory_order_relaxed);
  }
  void add(std::uint64_t number) noexcept { add(Tally{1, number, number * number}); }
  Tally total() const noexcept { return {count_.load(), sum_.load(), squares_.load()}; }

 private:
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::uint64_t> sum_{0};
  std::atomic<std::uint64_t> squares_{0};
};

/// Set while this thread runs the tasks of timeouts that stop() has returned.
inline constinit thread_local bool by_hand = false;

struct Ledger {
  // By the threads that schedule and cancel. An accepted one ends in exactly one of: ran, cancelled, unprocessed;
  // or is dropped by an executor, or goes with its timer.
  SharedTally accepted;
  SharedTally refused;
  SharedTally cancelled;

  // By tasks.
  SharedTally ran;
  SharedTally unprocessed;  // returned by stop(), and then run by hand
  std::atomic<std::int64_t> thrown{0};
  std::atomic<std::int64_t> early{0};

  // By the tasks and values that have a Life. Each is destroyed exactly once, however its timeout ended.
  SharedTally made;
  SharedTally destroyed;

  // The latest broken rule, as a message; null if there is none.
  std::atomic<const char*> wrong{nullptr};

  /// In a task. Some throw.
  void run(std::uint64_t number, steady_clock::time_point not_before) {
    constexpr std::uint64_t kOneThrowsOf = 1021;
    if (by_hand) return unprocessed.add(number);
    if (steady_clock::now() < not_before) ++early;
    ran.add(number);
    if (number % kOneThrowsOf != 0) return;
    ++thrown;
    throw Thrown();
  }
  void expect(bool condition, const char* otherwise) {
    if (!condition) wrong = otherwise;
  }
};

/// The task of most timeouts: trivial, so nothing tells when it is destroyed.
struct QuickTask {
  Ledger* ledger;
  std::uint64_t number;
  steady_clock::time_point not_before;

  void operator()() const { ledger->run(number, not_before); }
};

/// Adds its number to `made` once, and to `destroyed` once, even if it is moved.
class Life {
 public:
  Life(Ledger& ledger, std::uint64_t number) : ledger_(&ledger), number_(number) { ledger.made.add(number); }
  Life(Life&& other) noexcept : ledger_(std::exchange(other.ledger_, nullptr)), number_(other.number_) {}
  Life& operator=(Life&& other) noexcept {
    std::swap(ledger_, other.ledger_);
    std::swap(number_, other.number_);
    return *this;
  }
  ~Life() {
    if (ledger_ != nullptr) ledger_->destroyed.add(number_);
  }

  Ledger& ledger() const { return *ledger_; }
  std::uint64_t number() const { return number_; }

 private:
  Ledger* ledger_;
  std::uint64_t number_;
};

/// Such a task that also notes when it is destroyed.
class TrackedTask {
 public:
  TrackedTask(Ledger& ledger, std::uint64_t number, steady_clock::time_point not_before)
      : life_(ledger, number), not_before_(not_before) {}
  void operator()() const { life_.ledger().run(life_.number(), not_before_); }

 private:
  Life life_;
  steady_clock::time_point not_before_;
};

}  // namespace hwt::soak
