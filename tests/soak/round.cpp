#include "tests/soak/round.h"

#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <thread>

#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/hierarchical_wheel_timer.h"
#include "tests/soak/executor.h"
#include "tests/soak/lane.h"
#include "tests/soak/shortages.h"

namespace hwt::soak {
namespace {

enum class End {
  Stop,     // amid the traffic
  Drain,    // after the round has waited until nothing is pending
  Destroy,  // with timeouts pending
};

struct Setup {
  bool hierarchical;
  std::chrono::microseconds tick;
  std::int64_t ticks_per_wheel;
  std::int64_t most_pending;  // -1: any
  Executor::Kind executor;
  End end;
  std::size_t ring;
  std::chrono::milliseconds length;

  explicit Setup(perf::Random& random)
      : hierarchical(random.next() % 2 == 0),
        tick(hierarchical ? random.between(100, 2'000) : random.between(1, 5) * 1'000),
        ticks_per_wheel(std::int64_t{8} << random.between(0, 7)),
        most_pending(random.next() % 8 == 0 ? random.between(100, 10'000) : -1),
        executor(static_cast<Executor::Kind>(random.between(0, 4))),
        end(static_cast<End>(random.between(0, 2))),
        ring(std::size_t{64} << random.between(0, 9)),
        length(random.next() % 4 == 0 ? random.between(5, 50) : random.between(500, 3'000)) {}

  bool may_drop() const { return executor == Executor::Kind::Dropping; }
  /// Each timeout's end is known by its number.
  bool is_exact() const { return end != End::Destroy && !may_drop(); }
  bool runs_on_worker() const { return executor != Executor::Kind::OwnThread && !may_drop(); }
};

class Round {
 public:
  Round(std::uint64_t number, Totals& totals)
      : number_(number), totals_(totals), random_(number), setup_(random_), executor_(setup_.executor) {
    const Options options{
        .tick_duration = setup_.tick,
        .ticks_per_wheel = setup_.ticks_per_wheel,
        .max_pending_timeouts = setup_.most_pending,
        .executor = executor_.function(),
        .on_task_error = [this](const std::exception_ptr& error, const Timeout&) { note(error); },
        .slow_task = random_.next() % 4 == 0 ? 1ms : 0ms,
        .on_slow_task = [](const Timeout&, std::chrono::nanoseconds) {},
    };
    if (setup_.hierarchical) {
      own<HierarchicalWheelTimer>(options);
    } else {
      own<HashedWheelTimer>(options);
    }
  }

  void go() {
    std::thread churning([this] { churn(); });
    std::thread cancelling([this] { cancel_of_others(); });
    std::thread coming_and_going([this] { come_and_go(); });
    std::this_thread::sleep_for(setup_.length);

    std::vector<Timeout> unprocessed;
    if (setup_.end == End::Stop) unprocessed = stop();
    over_ = true;
    for (std::thread* thread : {&churning, &coming_and_going}) thread->join();
    last_handover_ = true;
    cancelling.join();
    if (setup_.end == End::Drain) {
      drain();
      unprocessed = stop();
      expect(unprocessed.empty(), "something from stop() when nothing was pending");
    }
    const std::int64_t pending = timer_->pending_timeouts();
    const TimerStats stats = stats_();
    totals_.unprocessed += stats.unprocessed;
    raise(totals_.latest_ns, stats.max_lag.count());
    if (setup_.end == End::Destroy) timer_.reset();
    executor_.finish();
    if (setup_.end != End::Destroy) check(stats);
    run_by_hand(unprocessed);
    unprocessed.clear();
    lane_.reset();
    timer_.reset();
    check_ends(pending + executor_.dropped());
  }

 private:
  template <class T>
  void own(const Options& options) {
    auto timer = std::make_unique<T>(options);
    stats_ = [timer = timer.get()] { return timer->stats(); };
    timer_ = std::move(timer);
  }

  // The traffic, a thread each. Most of the operations are those of the first; the others let it have the processor.

  void churn() {
    lane_.emplace(*timer_, ledger_, totals_, 2, setup_.ring, !setup_.is_exact());
    for (perf::Random random(number_); !over_;) {
      std::optional<RandomShortage> shortage;
      if (random.next() % 64 == 0) shortage.emplace(totals_, random, 3);
      lane_->churn(512, &handover_);
    }
    if (setup_.end != End::Stop) lane_->cancel_all();
  }

  void cancel_of_others() {
    Lane lane(*timer_, ledger_, totals_, 3, 0, false);
    std::vector<Pending> taken;
    taken.reserve(Handover::kMost);
    for (;;) {
      const bool last = last_handover_;
      handover_.take(taken);
      for (Pending& pending : taken) lane.cancel(pending);
      const bool nothing = taken.empty();
      taken.clear();
      if (nothing && last) return;
      if (nothing) std::this_thread::sleep_for(1ms);
    }
  }

  void come_and_go() {
    perf::Random random(number_ + 1);
    for (std::uint64_t lane_number = 4; !over_; ++lane_number) {
      std::thread([&] {
        Lane lane(*timer_, ledger_, totals_, lane_number, 16, !setup_.is_exact());
        std::optional<RandomShortage> shortage;
        if (random.next() % 4 == 0) shortage.emplace(totals_, random, 15);
        lane.churn(static_cast<int>(random.between(1, 200)), nullptr);
        lane.cancel_all();
      }).join();
      ++totals_.threads;
      std::this_thread::sleep_for(std::chrono::milliseconds(random.between(1, 10)));
    }
  }

  // The end.

  std::vector<Timeout> stop() {
    perf::Random random(number_);
    for (;;) {
      try {
        std::optional<RandomShortage> shortage;
        if (random.next() % 2 == 0) shortage.emplace(totals_, random, 2);
        return timer_->stop();
      } catch (const std::bad_alloc&) {
      }
    }
  }

  /// Waits until nothing is pending, as long as the number falls. Counts its own looks instead of time, because on a
  /// busy machine the worker may wait for minutes.
  void drain() {
    constexpr int kMost = 6'000;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (int in_vain = 0;; ++in_vain) {
      const std::int64_t pending = timer_->pending_timeouts();
      if (pending == 0) return;
      if (pending < least) in_vain = 0;
      least = std::min(least, pending);
      if (in_vain == kMost) break;
      std::this_thread::sleep_for(10ms);
    }
    std::printf("round %llu: %lld timeouts are still pending\n", static_cast<unsigned long long>(number_),
                static_cast<long long>(least));
    totals_.lost += least;
  }

  void run_by_hand(std::vector<Timeout>& unprocessed) {
    by_hand = true;
    for (Timeout& timeout : unprocessed) {
      timeout.task().run(timeout);
    }
    by_hand = false;
  }

  /// The timer's own statistics.
  void check(const TimerStats& stats) {
    expect(stats.pending == 0 && timer_->pending_timeouts() == 0, "pending after stop()");
    expect(stats.scheduled == stats.expired + stats.cancelled + stats.unprocessed, "the statistics do not add up");
    expect(stats.task_errors == errors_ || !setup_.runs_on_worker(), "errors were not counted");
    expect(timer_->stop().empty(), "something from a second stop()");
    if (!setup_.is_exact()) return;
    expect(stats.scheduled == static_cast<std::int64_t>(ledger_.accepted.total().count), "scheduled");
    expect(stats.expired + stats.cancelled ==
               static_cast<std::int64_t>(ledger_.ran.total().count + ledger_.cancelled.total().count),
           "expired and cancelled");
    expect(setup_.executor != Executor::Kind::None ||
               stats.expired == static_cast<std::int64_t>(ledger_.ran.total().count),
           "expired");
  }

  /// What became of each timeout: `others` at most ended otherwise than by running, cancel() or stop().
  void check_ends(std::int64_t others) {
    const Tally ran = ledger_.ran.total();
    const Tally left = ledger_.accepted.total() - ran - ledger_.cancelled.total() - ledger_.unprocessed.total();
    const auto count = static_cast<std::int64_t>(left.count);
    const bool known = setup_.is_exact();
    if (known ? left != Tally() : count < 0 || count > others) {
      std::printf("round %llu: of %llu timeouts %lld did not end exactly once\n",
                  static_cast<unsigned long long>(number_),
                  static_cast<unsigned long long>(ledger_.accepted.total().count), static_cast<long long>(count));
      totals_.lost += std::max<std::int64_t>(1, count < 0 ? -count : count);
    }
    expect(ledger_.made.total() == ledger_.destroyed.total(), "a task was not destroyed exactly once");
    expect(ledger_.thrown == thrown_seen_, "an exception of a task was not reported exactly once");
    expect(ledger_.wrong == nullptr, ledger_.wrong);
    totals_.early += ledger_.early;
    totals_.expired += static_cast<std::int64_t>(ran.count);
    totals_.dropped += executor_.dropped();
    totals_.task_errors += errors_;
    ++totals_.rounds;
  }

  void expect(bool condition, const char* otherwise) {
    if (condition) return;
    std::printf("round %llu: %s\n", static_cast<unsigned long long>(number_), otherwise);
    ++totals_.wrong;
  }

  void note(const std::exception_ptr& error) {
    ++errors_;
    const Source source = source_of(error);
    if (source == Source::Task) ++thrown_seen_;
    ledger_.expect(source < Source::Library, "an error of unknown kind");
  }

  static void raise(Count& count, std::int64_t value) { count = std::max(count.load(), value); }

  const std::uint64_t number_;
  Totals& totals_;
  perf::Random random_;
  const Setup setup_;

  // Tasks refer to these.
  Ledger ledger_;
  std::atomic<std::int64_t> errors_{0};
  std::atomic<std::int64_t> thrown_seen_{0};
  Executor executor_;

  std::unique_ptr<Timer> timer_;
  std::function<TimerStats()> stats_;
  std::optional<Lane> lane_;  // of churn(); its handles stay until the timer has ended
  Handover handover_;
  std::atomic<bool> over_{false};
  std::atomic<bool> last_handover_{false};
};

}  // namespace

void run_round(std::uint64_t number, Totals& totals) {
  Round(number, totals).go();
  malloc_trim(0);  // free memory must not hide used memory
  totals.heap_at_rest = test::bytes_in_use.load();
}

}  // namespace hwt::soak
