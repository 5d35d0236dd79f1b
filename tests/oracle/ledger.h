#pragma once

// The promises about one timeout, checked in its task and in the calls of its users. And shortages of memory.

#include <unistd.h>

#include "hashed_wheel_timer/timer.h"
#include "tests/oracle/executor.h"
#include "tests/oracle/record.h"
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

/// Set while this thread runs the tasks of timeouts that stop() has returned.
inline constinit thread_local bool by_hand = false;

/// The rules of one round, and the counts of all its timeouts.
class Ledger {
 public:
  Ledger(const char* timer, std::uint64_t seed) : timer_(timer), seed_(seed) {}

  /// Prints the first broken promise, and ends the program.
  [[noreturn]] void broken(const char* promise, const Record* record = nullptr) const {
    static std::atomic<bool> told{false};
    if (told.exchange(true))
      for (;;) pause();
    std::printf("BROKEN: %s\ntimer: %s, seed: %llu (to repeat it: --seed %llu --operations 1)\n", promise, timer_,
                static_cast<unsigned long long>(seed_), static_cast<unsigned long long>(seed_));
    if (record != nullptr) record->print();
    std::fflush(stdout);
    _exit(1);
  }
  void expect(bool kept, const char* promise, const Record* record = nullptr) const {
    if (!kept) [[unlikely]]
      broken(promise, record);
  }

  /// In a task. `now`: by the clock of the timer.
  void start(Record& record, TimePoint now) {
    expect(record.copies >= 1 || record.is_trivial, "a callable exists while it runs", &record);
    if (by_hand) {
      record.note(Act::Returned);
      expect(record.returned.fetch_add(1) == 0, "stop() returns a timeout once", &record);
      return;
    }
    record.note(Act::Starts);
    record.started = now.time_since_epoch().count();
    expect(record.runs.fetch_add(1) == 0, "a task runs at most once", &record);
    expect(record.cancels == 0, "a task does not run after cancel() returned true", &record);
    expect(record.returned == 0, "a timeout that stop() returned does not run", &record);
    expect(record.started >= record.not_before, "a task is never early", &record);
    expect(!record.joined, "no task runs after cancel_and_wait()", &record);
    expect(!stopped || !runs_on_worker || record.elsewhere, "nothing runs after stop() has returned", &record);
    record.running = true;
    if (record.order == 0) return;
    const std::uint32_t last = orders_[record.stream].exchange(record.order);
    expect(last < record.order, "timeouts of one thread run in the order of their deadlines", &record);
  }
  void end(Record& record) {
    if (by_hand) return;
    record.note(Act::Ends);
    expect(!record.joined, "no task runs after cancel_and_wait()", &record);
    record.running = false;
  }

  /// The whole task.
  void run(Record& record, Timeout& self) {
    start(record, by_hand ? TimePoint() : now());
    struct End {
      ~End() { ledger.end(record); }
      Ledger& ledger;
      Record& record;
    } const end{*this, record};
    if (record.plan != Plan::Nothing && !by_hand) act(record, self);
  }

  std::function<void(Record&, Timeout&)> act;  // carries out the plan of a task
  std::function<TimePoint()> now;              // the clock of the timer
  bool runs_on_worker = true;                  // all tasks
  bool may_drop = false;                       // the executor drops some
  std::int64_t limit = -1;                     // max_pending_timeouts

  std::atomic<bool> stopping{false};  // set before stop() or the destructor
  std::atomic<bool> stopped{false};   // set after it

  std::atomic<std::int64_t> operations{0}, thrown{0};
  std::atomic<std::int64_t> at_limit{0};  // refused by the limit
  std::atomic<std::int64_t> unknown{0};   // refused for a reason that the call does not tell
  std::atomic<std::int64_t> far{0};       // at most as many as are pending

 private:
  const char* const timer_;
  const std::uint64_t seed_;
  std::array<std::atomic<std::uint32_t>, 256> orders_{};
};

/// Counts itself and its copies in a record.
class Copy {
 public:
  Copy(Ledger& ledger, Record& record) noexcept : ledger_(&ledger), record_(&record) { ++record.copies; }
  Copy(const Copy& other) noexcept : Copy(*other.ledger_, *other.record_) {}
  Copy& operator=(const Copy& other) noexcept {
    Copy copy(other);
    std::swap(record_, copy.record_);
    return *this;
  }
  ~Copy() {
    const int left = --record_->copies;
    if (left == 0) record_->note(Act::Destroyed);
    ledger_->expect(left >= 0, "a callable is destroyed once", record_);
  }

  Ledger& ledger() const { return *ledger_; }
  Record& record() const { return *record_; }

 private:
  Ledger* ledger_;
  Record* record_;
};

/// A callable.
class Task {
 public:
  Task(Ledger& ledger, Record& record) : copy_(ledger, record) {}

  void operator()(Timeout& self) const { copy_.ledger().run(copy_.record(), self); }
  Copy copy() const { return copy_; }

 private:
  Copy copy_;
};

/// A callable that the timer need not destroy, so a cancel takes other ways.
struct TrivialTask {
  Ledger* ledger;
  Record* record;

  void operator()(Timeout& self) const { ledger->run(*record, self); }
};

/// A callable that is too large for a node. Its copy may take long, so that another thread takes the last place.
struct LargeTask {
  explicit LargeTask(const Task& copied) : task(copied) {}
  LargeTask(const LargeTask& other) : task(other.task) {
    if (task.copy().record().plan == Plan::Sleeps) std::this_thread::yield();
  }
  LargeTask& operator=(const LargeTask&) = delete;
  ~LargeTask() = default;

  void operator()(Timeout& self) const { task(self); }

  Task task;
  std::array<char, 40> more{};
};

class SharedTask : public TimerTask {
 public:
  SharedTask(Ledger& ledger, Record& record) : task_(ledger, record) {}
  void run(Timeout& self) override { task_(self); }
  void cancelled(Timeout& timeout) override {
    const Copy copy = task_.copy();
    copy.record().note(Act::Told);
    copy.ledger().expect(copy.record().told.fetch_add(1) == 0 && copy.record().runs == 0 && timeout.is_cancelled(),
                         "cancelled() is called once, and not if run() is", &copy.record());
  }

 private:
  const Task task_;
};

}  // namespace hwt::oracle
