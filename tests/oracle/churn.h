#pragma once

// Timeouts at full speed, without a record of each. They have numbers. For each way in which a timeout can end, the
// numbers are added up, which shows when one ended twice and another never.

#include "tests/oracle/ledger.h"

namespace hwt::oracle {

/// How many numbers were added, their sum, and the sum of their squares. Two tallies differ if one or two of their
/// numbers differ.
template <class Number>
struct Tally {
  Number count{0};
  Number sum{0};
  Number squares{0};

  template <class Other>
  void add(const Tally<Other>& other) {
    count += other.count;
    sum += other.sum;
    squares += other.squares;
  }
  void add(std::uint64_t number) { add(Tally<std::uint64_t>{1, number, number * number}); }
  Tally<std::uint64_t> total() const { return {count, sum, squares}; }
  Tally operator-(const Tally& other) const { return {count - other.count, sum - other.sum, squares - other.squares}; }
  bool operator==(const Tally&) const = default;
};

/// Some threads that cancel the oldest timeout of their ring and schedule a new one, again and again.
class Churn {
 public:
  static constexpr std::size_t kThreads = 2;

  /// `counts_lives`: the callable notes its end. Otherwise it is trivial, which is quicker.
  Churn(Timer& timer, Ledger& ledger, Totals& totals, std::size_t ring, bool shortages, bool counts_lives)
      : timer_(timer), ledger_(ledger), totals_(totals), shortages_(shortages), counts_lives_(counts_lives) {
    rings_.fill(std::vector<Pending>(ring));
  }

  /// Until `over` is set.
  void go(std::size_t thread, const std::atomic<bool>& over) {
    perf::Random random(thread);
    std::vector<Pending>& ring = rings_[thread];
    std::uint64_t number = std::uint64_t{thread} << 40;
    for (std::size_t at = 0; !over;) {
      std::optional<RandomShortage> shortage;
      if (shortages_ && random.next() % 64 == 0) shortage.emplace(totals_, random, 3);
      const TimePoint now = ledger_.now();
      Calls calls;
      for (int i = 0; i < 512; ++i) {
        Pending& place = ring[at];
        at = at + 1 == ring.size() ? 0 : at + 1;
        if (!place.may_expire) cancel(place, calls);
        place = schedule(now, random, number++, calls);
        if (i % 16 != 0) continue;
        const std::lock_guard lock(mutex_);  // the other thread cancels it, and this one cancels another one
        std::swap(place, swapped_[random.next() % swapped_.size()]);
      }
      tell(calls);
    }
  }

  /// When no thread is in go().
  void cancel_all() {
    Calls calls;
    for (std::vector<Pending>& ring : rings_)
      for (Pending& pending : ring) cancel(pending, calls);
    for (Pending& pending : swapped_) cancel(pending, calls);
    tell(calls);
  }

  void drop_handles() {
    rings_ = {};
    swapped_ = {};
  }

  std::int64_t operations() const { return operations_; }
  std::int64_t accepted() const { return static_cast<std::int64_t>(accepted_.total().count); }
  std::int64_t runs() const { return static_cast<std::int64_t>(ran_.total().count); }
  std::int64_t cancels() const { return static_cast<std::int64_t>(cancelled_.total().count); }

  /// Returns how many have no known end. `is_exact`: none.
  std::int64_t check_ends(bool is_exact) const {
    const auto left = accepted_.total() - ran_.total() - cancelled_.total() - returned_.total();
    ledger_.expect(is_exact ? left == Tally<std::uint64_t>() : static_cast<std::int64_t>(left.count) >= 0,
                   "each timeout ends in exactly one way");
    return static_cast<std::int64_t>(left.count);
  }
  /// When the timer is gone.
  void check_lives() const {
    ledger_.expect(made_.total() == destroyed_.total(), "each callable is destroyed exactly once");
  }

 private:
  struct Pending {
    Timeout timeout;
    std::uint64_t number = 0;
    bool may_expire = false;  // soon, so it need not be cancelled
  };
  /// The results of some calls of a thread.
  struct Calls {
    Tally<std::uint64_t> accepted, refused, cancelled;
  };

  struct Quick {
    Churn* churn;
    std::uint64_t number;
    TimePoint not_before;
    void operator()() const { churn->run(number, not_before); }
  };
  struct Alive : Quick {
    explicit Alive(const Quick& quick) : Quick(quick) { churn->made_.add(number); }
    Alive(Alive&& other) noexcept : Quick(other) { other.churn = nullptr; }
    Alive& operator=(Alive&&) = delete;
    ~Alive() {
      if (churn != nullptr) churn->destroyed_.add(number);
    }
  };

  Pending schedule(TimePoint now, perf::Random& random, std::uint64_t number, Calls& calls) {
    using std::chrono::microseconds;
    const std::uint64_t choice = random.next() % 16;
    const TimePoint deadline = now + (choice == 0   ? microseconds(random.between(-1'000, 15'000))
                                      : choice == 1 ? microseconds(1h)
                                                    : microseconds(random.between(5'000, 1'000'000)));
    const Quick task{this, number, deadline};
    const bool had_stopped = ledger_.stopped;
    const std::int64_t failed_before = test::Shortage::failed_here();
    Pending pending{
        counts_lives_ ? timer_.try_new_timeout(Alive(task), deadline) : timer_.try_new_timeout(task, deadline), number,
        choice == 0};
    (pending.timeout ? calls.accepted : calls.refused).add(number);
    ledger_.expect(!pending.timeout || !had_stopped, "a timer accepts nothing after stop()");
    ledger_.expect(
        pending.timeout || ledger_.limit > 0 || ledger_.stopping || test::Shortage::failed_here() != failed_before,
        "a timer refuses nothing without a reason");
    return pending;
  }

  void cancel(Pending& pending, Calls& calls) {
    if (std::exchange(pending.timeout, {}).cancel()) calls.cancelled.add(pending.number);
  }

  void tell(const Calls& calls) {
    accepted_.add(calls.accepted);
    cancelled_.add(calls.cancelled);
    ledger_.unknown += static_cast<std::int64_t>(calls.refused.count);
    operations_ += static_cast<std::int64_t>(calls.accepted.count + calls.refused.count + calls.cancelled.count);
  }

  /// In a task. Some throw.
  void run(std::uint64_t number, TimePoint not_before) {
    constexpr std::uint64_t kOneThrowsOf = 1021;
    if (by_hand) return returned_.add(number);
    ledger_.expect(ledger_.now() >= not_before, "a task is never early");
    ledger_.expect(!ledger_.stopped || !ledger_.runs_on_worker, "nothing runs after stop() has returned");
    ran_.add(number);
    if (number % kOneThrowsOf != 0) return;
    ++ledger_.thrown;
    throw Thrown();
  }

  Timer& timer_;
  Ledger& ledger_;
  Totals& totals_;
  const bool shortages_, counts_lives_;
  std::array<std::vector<Pending>, kThreads> rings_;
  std::mutex mutex_;
  std::array<Pending, 64> swapped_;  // under the mutex

  std::atomic<std::int64_t> operations_{0};
  // All threads add to these. `returned_`: by stop(), and then run by hand.
  Tally<std::atomic<std::uint64_t>> accepted_, cancelled_, ran_, returned_, made_, destroyed_;
};

}  // namespace hwt::oracle
