// Floods: loads that keep a timer as busy as they can, all at once, on each kind of timer in turn. Meanwhile the
// timeouts of other threads must not be late, and no call may take long.

#include <charconv>
#include <condition_variable>
#include <cstdio>
#include <mutex>

#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/hierarchical_wheel_timer.h"
#include "hashed_wheel_timer/keyed_timer.h"
#include "hashed_wheel_timer/loop_timer.h"
#include "perf/random.h"
#include "tests/support/floods.h"
#include "tests/support/system.h"

namespace hwt::oracle {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

class Flood {
 public:
  Flood(const char* name, std::unique_ptr<Timer> timer, LoopTimer* driven)
      : name_(name), driven_(driven), timer_(std::move(timer)) {
    if (driven != nullptr) driven->on_earlier([this] { ring(); });
  }

  /// Returns whether all bounds were kept.
  bool run(nanoseconds length) {
    std::vector<std::jthread> threads;
    const auto start = [&](auto f) { threads.emplace_back([this, f] { f(*timer_); }); };
    if (driven_ != nullptr) start([this](Timer&) { drive(*driven_); });
    start([this](Timer& timer) { test::schedule_and_cancel(timer, over_, calls_, 2, 100'000); });
    start([this](Timer& timer) { test::schedule_again(timer, over_, 150'000); });
    start([this](Timer& timer) { test::reschedule_always(timer, over_, calls_, 1, 50'000); });
    start([this](Timer& timer) { test::leave_far_ones(timer, over_, calls_, 60, 100); });
    start([this](Timer& timer) { cancel_waves(timer); });
    start([this](Timer& timer) { expire_waves(timer); });
    start([this](Timer& timer) { come_and_go(timer); });
    start([this](Timer& timer) { grow(timer); });
    start([this](Timer& timer) { probe(timer, 20ms); });
    start([this](Timer& timer) { probe(timer, 200ms); });
    start([this](Timer&) { sleep_beside(); });
    const auto begin = steady_clock::now();
    const double used = test::processor_seconds();
    std::this_thread::sleep_for(length);
    const double passed = std::chrono::duration<double>(steady_clock::now() - begin).count();
    const double share = (test::processor_seconds() - used) / passed / std::thread::hardware_concurrency();
    over_ = true;
    ring();
    threads.clear();
    const TimerStats stats = timer_->stats();
    timer_.reset();
    return report(stats, share);
  }

 private:
  /// One thread cancels at once all that it has in the wheel, in any order.
  void cancel_waves(Timer& timer) {
    constexpr std::size_t kWave = 200'000;
    perf::Random random(1);
    std::vector<Timeout> wave;
    while (!over_) {
      for (std::size_t i = 0; i < kWave && !over_; ++i) {
        const std::chrono::milliseconds delay(random.between(3'600'000, 7'200'000));
        wave.push_back(calls_.schedule([&] { return timer.new_timeout(test::NotRun(), delay); }));
      }
      std::this_thread::sleep_for(100ms);
      for (std::size_t i = wave.size(); i > 1; --i) std::swap(wave[i - 1], wave[random.next() % i]);
      for (Timeout& timeout : wave) calls_.cancel([&] { timeout.cancel(); });
      wave.clear();
    }
  }

  /// Many timeouts that are due at one point of time, seconds ahead.
  void expire_waves(Timer& timer) {
    constexpr int kWave = 100'000;
    while (!over_) {
      const auto due = steady_clock::now() + 2s;
      for (int i = 0; i < kWave && !over_; ++i) calls_.schedule([&] { return timer.add([] {}, due); });
      while (!over_ && steady_clock::now() < due) std::this_thread::sleep_for(10ms);
    }
  }

  /// Threads that use the timer once.
  void come_and_go(Timer& timer) {
    while (!over_) {
      std::thread([&] { calls_.first_use([&] { timer.add([] {}, 1ms); }); }).join();
      std::this_thread::sleep_for(1ms);
    }
  }

  /// A table of values by key that grows, again and again.
  void grow(Timer& timer) {
    constexpr std::uint64_t kKeys = 200'000;
    KeyedTimer<std::uint64_t, int> values(timer, [](std::uint64_t, int&) {});
    while (!over_) {
      for (std::uint64_t key = 0; key < kKeys && !over_; ++key) {
        calls_.set([&] { return values.set(key, 1, test::kAfterTheFlood); });
      }
      values.drain();
    }
  }

  /// One timeout after the other, each of which should be punctual.
  void probe(Timer& timer, nanoseconds delay) {
    while (!over_) {
      const auto due = steady_clock::now() + delay;
      const auto ran = std::make_shared<std::atomic<bool>>(false);
      Timeout timeout = calls_.schedule([&] {
        return timer.new_timeout(
            [this, ran, due] {
              lateness_.note(steady_clock::now() - due);
              *ran = true;
            },
            due);
      });
      while (!*ran && !over_) std::this_thread::sleep_for(500us);
      if (!*ran && steady_clock::now() > due) lateness_.note(steady_clock::now() - due);
      timeout.cancel_and_wait();
    }
  }

  /// How late a thread is without a timer, because the machine is busy.
  void sleep_beside() {
    while (!over_) {
      const auto due = steady_clock::now() + 20ms;
      std::this_thread::sleep_until(due);
      machine_.note(steady_clock::now() - due);
    }
  }

  void drive(LoopTimer& timer) {
    while (!over_) {
      const auto next = calls_.run_due([&] { return timer.run_due(); });
      std::unique_lock lock(mutex_);
      const auto is_rung = [this] { return rung_ || over_; };
      next ? static_cast<void>(came_.wait_until(lock, *next, is_rung)) : came_.wait(lock, is_rung);
      rung_ = false;
    }
  }
  void ring() {
    const std::lock_guard lock(mutex_);
    rung_ = true;
    came_.notify_one();
  }

  /// `share`: of all processors, which a flood takes if no other program runs. If others do, all takes longer.
  bool report(const TimerStats& stats, double share) const {
    const nanoseconds most =
        std::chrono::duration_cast<nanoseconds>(2s / std::clamp(share, 0.1, 1.0)) + 4 * machine_.longest();
    std::printf(
        "%s: %.1f M scheduled, %.1f M expired; %.0f %% of the processors; a thread without a timer at most "
        "%.0f ms late; the bound: %.0f ms\n",
        name_, static_cast<double>(stats.scheduled) / 1e6, static_cast<double>(stats.expired) / 1e6, 100 * share,
        milliseconds(machine_.longest()), milliseconds(most));
    bool kept = true;
    const auto line = [&](const char* what, const test::CallTimes& times) {
      if (times.count() == 0) return;
      const bool is_kept = times.longest() <= most;
      kept = kept && is_kept;
      std::printf("  %-22s %12lld, the longest %8.1f ms%s\n", what, static_cast<long long>(times.count()),
                  milliseconds(times.longest()), is_kept ? "" : ": TOO LONG");
    };
    line("late timeouts", lateness_);
    line("new_timeout(), add()", calls_.schedule);
    line("first use by a thread", calls_.first_use);
    line("cancel()", calls_.cancel);
    line("reschedule()", calls_.move);
    line("KeyedTimer::set()", calls_.set);
    line("run_due()", calls_.run_due);
    std::fflush(stdout);
    return kept && lateness_.count() != 0;
  }
  static double milliseconds(nanoseconds time) { return static_cast<double>(time.count()) / 1e6; }

  struct Calls : test::FloodCalls {
    test::CallTimes first_use;
    test::CallTimes set;
    test::CallTimes run_due;
  };

  const char* const name_;
  LoopTimer* const driven_;
  std::atomic<bool> over_{false};
  Calls calls_;
  test::CallTimes lateness_;
  test::CallTimes machine_;
  std::mutex mutex_;
  std::condition_variable came_;
  bool rung_ = false;
  std::unique_ptr<Timer> timer_;  // the last one, because tasks use the others
};

bool run_floods(std::chrono::seconds length) {
  constexpr auto kMost = 15s;  // of one flood
  const auto end = steady_clock::now() + length;
  const nanoseconds each = std::min<nanoseconds>(kMost, length / 4);
  bool kept = true;
  do {
    kept = Flood("HashedWheelTimer", std::make_unique<HashedWheelTimer>(1ms), nullptr).run(each) && kept;
    kept = Flood("HierarchicalWheelTimer", std::make_unique<HierarchicalWheelTimer>(1ms), nullptr).run(each) && kept;
    kept = Flood("HierarchicalWheelTimer", std::make_unique<HierarchicalWheelTimer>(100us), nullptr).run(each) && kept;
    auto timer = std::make_unique<LoopTimer>(1ms);
    LoopTimer* const driven = timer.get();
    kept = Flood("LoopTimer", std::move(timer), driven).run(each) && kept;
  } while (steady_clock::now() < end);
  return kept;
}

}  // namespace
}  // namespace hwt::oracle

int main(int argc, char** argv) {
  long seconds = 0;
  const char* const text = argc == 2 ? argv[1] : "";
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), seconds);
  if (argc != 2 || error != std::errc() || *end != '\0' || seconds < 1) {
    std::fprintf(stderr, "usage: flood SECONDS\n");
    return 2;
  }
  const bool kept = hwt::oracle::run_floods(std::chrono::seconds(seconds));
  std::printf("%s\n", kept ? "all bounds were kept" : "a bound was broken");
  return kept ? 0 : 1;
}
