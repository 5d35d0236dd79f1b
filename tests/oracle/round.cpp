#include "tests/oracle/round.h"

#include "tests/oracle/churn.h"
#include "tests/oracle/host.h"
#include "tests/oracle/plans.h"
#include "tests/oracle/relatives.h"

namespace hwt::oracle {
namespace {

class Round {
 public:
  Round(std::uint64_t seed, bool soaks, Totals& totals)
      : totals_(totals),
        random_(seed),
        setup_(random_, soaks),
        ledger_(kKinds[static_cast<int>(setup_.kind)], seed),
        executor_(setup_.executor),
        preemption_(seed) {
    Record::began = steady_clock::now();
    ledger_.runs_on_worker = setup_.runs_on_worker();
    ledger_.may_drop = setup_.may_drop();
    ledger_.limit = setup_.limit;
    ledger_.act = [this](Record& record, Timeout& self) { plans_->carry_out(record, self); };
    host_.emplace(setup_,
                  Options{.executor = executor_.function(),
                          .on_task_error = [this](const std::exception_ptr& error, const Timeout&) { note(error); },
                          .slow_task = random_.next() % 4 == 0 ? 1ms : 0ms,
                          .on_slow_task = [](const Timeout&, nanoseconds) {}},
                  preemption_);
    ledger_.now = host_->clock();
    caller_.emplace(host_->timer(), ledger_, elsewhere_, setup_.kind != Kind::Manual);
    Record::began = steady_clock::now();
  }

  void go() {
    relics().check_ids(ledger_, caller_->timer());
    start_lanes();
    std::vector<Timeout> unprocessed;
    watch(setup_.churns + (setup_.end == End::Stop ? std::chrono::microseconds(random_.between(0, 100'000)) : 0us));
    if (setup_.end == End::Stop) unprocessed = stop();
    churn_is_over_ = true;
    while (running_ != 0) watch(2ms);
    for (std::thread& thread : threads_) thread.join();
    if (setup_.end == End::Drain) {
      for (Lane& lane : lanes_) lane.end_all();
      if (churn_) churn_->cancel_all();
      end_relatives();
      drain();
      wake_up();
      unprocessed = stop();
      ledger_.expect(unprocessed.empty(), "stop() returns nothing when nothing is pending");
    }
    const std::int64_t pending = caller_->timer().pending_timeouts();
    const TimerStats stats = caller_->timer().stats();
    if (setup_.end == End::Destroy) {
      end_relatives();
      destroy();
    }
    executor_.finish();
    end_relatives();
    job_thread_.reset();
    if (setup_.end != End::Destroy) check(caller_->timer().stats(), unprocessed.size());
    run_by_hand(unprocessed);
    check_ends(pending + static_cast<std::int64_t>(unprocessed.size()) + executor_.dropped());
    unprocessed.clear();
    exchange_.emplace();
    relics().keep(records_);
    for_each([](Record& record) { record.handle = Timeout(); });
    if (churn_) churn_->drop_handles();
    host_.reset();
    relics().check_handles(ledger_);
    check_copies();
    add_up(stats);
  }

 private:
  // The traffic.

  void start_lanes() {
    const std::size_t lanes = Setup::kLanes;
    for (std::size_t i = 0; i < lanes; ++i) records_.emplace_back(setup_.records);
    of_tasks_ = &records_.emplace_back(4'000);
    plans_.emplace(*caller_, setup_, totals_, records_, *of_tasks_);
    Records& of_short_lived = records_.emplace_back(4'000);
    for (std::size_t i = 0; i < lanes; ++i) {
      lanes_.emplace_back(*caller_, setup_.traffic, totals_, *exchange_, records_, records_[i], random_.next(),
                          static_cast<std::uint8_t>(i + 1));
    }
    for (Lane& lane : lanes_) start([&lane] { lane.go(); });
    if (setup_.churns != 0ms) {
      churn_.emplace(caller_->timer(), ledger_, totals_, setup_.traffic.ring, setup_.traffic.shortages,
                     !setup_.is_exact());
      for (std::size_t i = 0; i < Churn::kThreads; ++i) start([this, i] { churn_->go(i, churn_is_over_); });
    }
    if (setup_.comes_and_goes) start([this, &of_short_lived] { come_and_go(of_short_lived); });
    if (!setup_.relatives) return;
    values_.emplace(caller_->timer(), [this](std::uint64_t, Value& value) {
      ledger_.start(value.copy.record(), ledger_.now());
      ledger_.end(value.copy.record());
    });
    for (unsigned i = 0; i < 2; ++i) {
      Relatives& relatives = relatives_.emplace_back(*caller_, setup_.traffic, totals_, *values_, elsewhere_,
                                                     of_values_.emplace_back(4'000), of_scopes_.emplace_back(4'000),
                                                     random_.next(), std::uint64_t{1000} * i);
      start([&relatives, i] {
        thread_number = static_cast<std::uint8_t>(20 + i);
        relatives.go();
      });
    }
  }

  template <class F>
  void start(F f) {
    ++running_;
    threads_.emplace_back([this, f] {
      {
        std::optional<Preemption::Here> here;
        if (setup_.preempts) here.emplace(preemption_);
        f();
      }
      --running_;
    });
  }

  void come_and_go(Records& records) {
    perf::Random random(setup_.traffic.ring);
    Traffic traffic = setup_.traffic;
    traffic.orders = false;
    for (int i = 0; i < 20; ++i) {
      traffic.ring = 8;
      traffic.steps = static_cast<int>(random.between(1, 200));
      std::thread([&] {
        Lane lane(*caller_, traffic, totals_, *exchange_, records_, records, random.next(), 10);
        lane.go();
        lane.end_all();
      }).join();
      ++totals_.threads;
    }
  }

  void note(const std::exception_ptr& error) {
    ++errors_;
    bool known = true;
    try {
      std::rethrow_exception(error);
    } catch (const Thrown&) {
      ++thrown_seen_;
    } catch (const std::bad_alloc&) {
    } catch (const Executor::Refused&) {
    } catch (const std::exception&) {
      known = setup_.relatives;  // A RepeatedTimer's next timeout may have been refused.
    } catch (...) {
      known = false;
    }
    ledger_.expect(known, "on_task_error gets what a task has thrown");
  }

  // The end.

  /// Looks at the counters meanwhile.
  void watch(std::chrono::microseconds time) {
    for (const auto end = steady_clock::now() + time; running_ != 0 && steady_clock::now() < end;) {
      const std::int64_t pending = caller_->timer().pending_timeouts();
      ledger_.expect(pending >= 0 && (setup_.limit <= 0 || pending <= setup_.limit),
                     "pending_timeouts() is from 0 to the limit");
      const TimerStats stats = caller_->timer().stats();
      ledger_.expect(stats.pending >= 0 && stats.expired >= seen_.expired && stats.cancelled >= seen_.cancelled &&
                         stats.rejected >= seen_.rejected && stats.max_lag >= seen_.max_lag,
                     "the counters only grow");
      seen_ = stats;
      totals_.under_way = ledger_.operations + (churn_ ? churn_->operations() : 0);
      std::this_thread::sleep_for(200us);
    }
  }

  std::vector<Timeout> stop() {
    ledger_.stopping = true;
    for (;;) {
      try {
        std::optional<RandomShortage> shortage;
        if (setup_.traffic.shortages && random_.next() % 2 == 0) shortage.emplace(totals_, random_, 2);
        std::vector<Timeout> unprocessed = caller_->timer().stop();
        ledger_.stopped = true;
        return unprocessed;
      } catch (const std::bad_alloc&) {
      }
    }
  }

  /// Another thread cancels timeouts meanwhile, by their handles.
  void destroy() {
    std::vector<Exchange::Entry> open;
    for_each_of(records_, [&](Record& record) {
      if (record.is_open && record.handle && !record.has_ended() && open.size() < 500) {
        open.push_back({record.handle, &record});
      }
    });
    ledger_.stopping = true;
    std::thread cancelling([&] {
      for (Exchange::Entry& entry : open) caller_->cancel(*entry.record, &entry.handle, false, false);
    });
    host_->destroy();
    cancelling.join();
    ledger_.stopped = true;
  }

  /// Waits until nothing is pending, as long as the number falls. Counts its own looks instead of time, because on a
  /// busy machine the worker may wait for minutes.
  void drain() {
    constexpr int kMost = 6'000;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (int in_vain = 0; in_vain < kMost; ++in_vain) {
      const std::int64_t pending = caller_->timer().pending_timeouts();
      if (pending == 0) return;
      if (pending < least) in_vain = 0;
      least = std::min(least, pending);
      std::this_thread::sleep_for(in_vain < 100 ? 1ms : 10ms);
    }
    for_each([this](Record& record) {
      if (record.accepted && !record.has_ended()) ledger_.broken("each timeout runs when it is due", &record);
    });
    ledger_.broken("each timeout runs when it is due");
  }

  /// One timeout after the other, of a timer that sleeps.
  void wake_up() {
    for (int i = 0; i < 8; ++i) {
      Record* const record = of_tasks_->next();
      if (record == nullptr) return;
      const auto form = i % 2 == 0 ? Caller::Form::NewTrivial : Caller::Form::Add;
      caller_->schedule(*record, form, caller_->due_in(random_, std::chrono::microseconds(random_.between(0, 2'000))));
      drain();
    }
  }

  void end_relatives() {
    if (!values_) return;
    relatives_.clear();
    returned(values_->stop(), ledger_);
    values_.reset();  // waits for the last on_expire
    for_each_of(of_values_, [this](Record& record) {
      ledger_.expect(record.runs + record.cancels + record.returned == (record.accepted ? 1 : 0),
                     "each value ends in exactly one way", &record);
      ledger_.expect(record.copies == 0, "each value is destroyed", &record);
    });
  }

  void run_by_hand(std::vector<Timeout>& unprocessed) {
    if (setup_.relatives) return;
    by_hand = true;
    for (Timeout& timeout : unprocessed) {
      ledger_.expect(timeout.is_cancelled() && !timeout.is_pending(), "stop() returns cancelled timeouts");
      timeout.task().run(timeout);
    }
    by_hand = false;
  }

  template <class F>
  static void for_each_of(std::deque<Records>& all, F f) {
    for (Records& records : all)
      for (std::size_t i = 0; i < records.used(); ++i) f(records[i]);
  }
  template <class F>
  void for_each(F f) {
    for (std::deque<Records>* all : {&records_, &of_scopes_}) for_each_of(*all, f);
  }

  /// The timer's own statistics, of timeouts that have all ended. `returned`: by stop().
  void check(const TimerStats& stats, std::size_t returned) {
    std::int64_t accepted = 0, runs = 0, cancels = 0;
    for_each([&](const Record& record) {
      accepted += record.accepted ? 1 : 0;
      runs += record.runs;
      cancels += record.cancels;
    });
    if (churn_) {
      accepted += churn_->accepted();
      runs += churn_->runs();
      cancels += churn_->cancels();
    }
    ledger_.expect(stats.pending == 0 && caller_->timer().pending_timeouts() == 0, "nothing is pending after stop()");
    ledger_.expect(stats.scheduled == stats.expired + stats.cancelled + stats.unprocessed, "stats() balances");
    ledger_.expect(stats.unprocessed == static_cast<std::int64_t>(returned), "stats().unprocessed");
    ledger_.expect(caller_->timer().stop().empty(), "a second stop() returns nothing");
    ledger_.expect(ledger_.thrown == thrown_seen_, "each exception of a task is reported once");
    ledger_.expect(stats.task_errors == errors_ || !setup_.runs_on_worker(), "stats().task_errors");
    ledger_.expect(!setup_.has_room || ledger_.at_limit == 0, "nothing is refused below the limit");
    if (!setup_.relatives) {
      ledger_.expect(stats.rejected >= ledger_.at_limit && stats.rejected <= ledger_.at_limit + ledger_.unknown,
                     "stats().rejected");
    }
    if (!setup_.is_exact()) return;
    ledger_.expect(stats.scheduled == accepted, "stats().scheduled");
    // A task that cancel_and_wait() has taken from an executor counts as expired here, and as cancelled there.
    ledger_.expect(stats.expired + stats.cancelled == runs + cancels, "stats().expired and cancelled");
    ledger_.expect(stats.expired >= runs && stats.cancelled <= cancels, "stats().expired");
  }

  /// What became of each timeout: `others` at most ended otherwise than by running, cancel() or stop().
  void check_ends(std::int64_t others) {
    for_each([&](Record& record) {
      const int ends = record.runs + record.cancels + record.returned;
      const int told = record.told;
      ledger_.expect(ends == 0 || record.accepted, "a refused timeout has no end", &record);
      ledger_.expect(ends <= 1 && (ends == 1 || !record.accepted || !setup_.is_exact()),
                     "each timeout ends in exactly one way", &record);
      ledger_.expect(record.runs == 0 || record.started >= record.not_before, "a task is never early", &record);
      ledger_.expect(!record.running, "each task ends", &record);
      ledger_.expect(told == 0 || (record.is_shared_task && record.accepted), "only a TimerTask is told", &record);
      if (record.handle) check_end(record);
      ledger_.expect(
          record.copies == 0 || record.is_shared_task || (record.accepted && record.runs + record.cancels == 0),
          "each callable is destroyed", &record);
    });
    std::int64_t unknown = churn_ ? churn_->check_ends(setup_.is_exact()) : 0;
    for_each_of(records_, [&](const Record& record) { unknown += record.accepted && !record.has_ended() ? 1 : 0; });
    ledger_.expect(unknown <= others, "no more timeouts were dropped than that");
  }

  void check_end(Record& record) {
    const bool expired = record.handle.is_expired();
    ledger_.expect(expired != record.handle.is_cancelled() && !record.handle.is_pending(), "a handle tells the end",
                   &record);
    ledger_.expect(record.runs == 0 || expired, "a timeout that has run is expired", &record);
    ledger_.expect(record.returned == 0 || !expired, "a timeout that was returned is cancelled", &record);
    ledger_.expect(record.told == (record.is_shared_task && !expired ? 1 : 0), "a TimerTask is told once", &record);
  }

  /// When all handles and the timer are gone.
  void check_copies() {
    for_each([this](const Record& record) { ledger_.expect(record.copies == 0, "each task is destroyed", &record); });
    if (churn_) churn_->check_lives();
  }

  void add_up(const TimerStats& stats) {
    totals_.scheduled += stats.scheduled;
    totals_.cancelled += stats.cancelled;
    totals_.expired += stats.expired;
    totals_.unprocessed += stats.unprocessed;
    totals_.refused += stats.rejected;
    totals_.task_errors += errors_;
    totals_.dropped += executor_.dropped();
    totals_.latest_ns = std::max(totals_.latest_ns.load(), stats.max_lag.count());
    totals_.calls += ledger_.operations;
    totals_.churned += churn_ ? churn_->operations() : 0;
    totals_.under_way = 0;
    ++totals_.rounds;
  }

  Totals& totals_;
  perf::Random random_;
  Setup setup_;
  Ledger ledger_;
  std::atomic<std::int64_t> errors_{0}, thrown_seen_{0};
  TimerStats seen_;
  Executor executor_;
  std::optional<test::JobThread> job_thread_{std::in_place, 4};
  BatchExecutor elsewhere_{job_thread_->executor()};
  Preemption preemption_;

  std::deque<Records> records_;
  std::deque<Records> of_values_;
  std::deque<Records> of_scopes_;
  Records* of_tasks_ = nullptr;
  std::optional<Exchange> exchange_{std::in_place};
  std::optional<Host> host_;
  std::optional<Caller> caller_;
  std::optional<Plans> plans_;
  std::deque<Lane> lanes_;
  std::optional<Churn> churn_;
  std::atomic<bool> churn_is_over_{false};
  std::optional<Values> values_;
  std::deque<Relatives> relatives_;
  std::atomic<int> running_{0};
  std::vector<std::thread> threads_;
};

}  // namespace

void run_round(std::uint64_t seed, bool soaks, Totals& totals) {
  Round(seed, soaks, totals).go();
  totals.heap_at_rest = test::bytes_in_use.load();
  constexpr std::int64_t kLittle = 64 << 10;  // of the library, for all timers, and of the relics
  // The process keeps an entry of 64 bytes for each slab. A soak has thousands of slabs at a time.
  constexpr std::int64_t kEntries = 1 << 20;
  Ledger("any", seed)
      .expect(totals.heap_at_rest <= kLittle + (soaks ? kEntries : 0), "a timer leaves no memory behind");
}

}  // namespace hwt::oracle
