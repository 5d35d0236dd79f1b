#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <optional>

#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/keyed_timer.h"
#include "hashed_wheel_timer/repeated_timer.h"
#include "hashed_wheel_timer/stop_after.h"
#include "hashed_wheel_timer/timeout_scope.h"
#include "tests/soak/lane.h"
#include "tests/soak/shortages.h"

namespace hwt::soak {

/// Refusals of a timer that a soak provokes.
template <class F>
void unless_refused(F&& f) {
  try {
    f();
  } catch (const IllegalState&) {
  } catch (const RejectedExecution&) {
  } catch (const std::bad_alloc&) {
  }
}

/// One thread that uses everything else that there is, a little of each: reschedule(), cancel_and_wait(), TimerTask,
/// tasks that schedule, TimeoutScope and Leeway. If it is asked to, it also uses KeyedTimer, RepeatedTimer and
/// StopAfter.
class Family {
 public:
  Family(Timer& timer, Ledger& ledger, Totals& totals, std::uint64_t number, bool chains, bool relatives)
      : timer_(timer), ledger_(ledger), totals_(totals), random_(number), next_(number << 40), chains_(chains) {
    if (!relatives) return;
    values_.emplace(timer, [this](int, Value& value) { ledger_.check_time(value.deadline->load()); });
    for (std::optional<Repeated>& repeated : repeated_) repeated.emplace(*this);
  }
  ~Family() { end_relatives(); }

  void step() {
    std::optional<RandomShortage> shortage;
    if (random_.next() % 16 == 0) shortage.emplace(totals_, random_, 5);
    unless_refused([this] {
      switch (random_.next() % 9) {
        case 0:
        case 1:
          return put_off();
        case 2:
          return join();
        case 3:
          return share();
        case 4:
          return chain();
        case 5:
          return strike_worker();
        case 6:
          return values_ ? use_values() : put_off();
        case 7:
          return use_scope();
        default:
          return values_ ? use_repeated() : join();
      }
    });
  }

  /// Nothing is left pending by this thread. The timer must still be there.
  void quieten() {
    for (Kept& kept : kept_) cancel(kept.timeout, kept.number);
    for (Shared& shared : shared_) cancel(shared.timeout, shared.number);
    end_relatives();
  }

  /// When the timer has ended, and everything that ran for it.
  void check(bool may_drop) {
    for (const Shared& shared : shared_) {
      const int calls = shared.task->calls;
      ledger_.expect(calls == 1 || (calls == 0 && (may_drop || !shared.accepted)),
                     "a TimerTask was not called exactly once");
    }
  }

 private:
  using Deadline = std::atomic<steady_clock::time_point>;

  /// A keep-alive: its deadline is the latest one.
  struct Kept {
    std::uint64_t number = 0;
    Timeout timeout;
    Deadline deadline{};
  };
  struct Value {
    Life life;
    Deadline* deadline;
  };
  class SharedTask : public TimerTask {
   public:
    SharedTask(Ledger& ledger, std::uint64_t number, steady_clock::time_point not_before)
        : task_(ledger, number, not_before) {}
    void run(Timeout&) override {
      calls += by_hand ? 0 : 1;
      task_();
    }
    void cancelled(Timeout&) override { ++calls; }

    std::atomic<int> calls{0};

   private:
    const TrackedTask task_;
  };
  struct Shared {
    std::uint64_t number = 0;
    bool accepted = false;
    std::shared_ptr<SharedTask> task;
    Timeout timeout;
  };
  struct Repeated {
    explicit Repeated(Family& family) : ledger(family.ledger_) {
      timer.emplace("soak", 3ms, family.timer_,
                    RepeatedTimer::Hooks{.on_trigger =
                                             [this] {
                                               ledger.expect(!inside.exchange(true), "triggers overlap");
                                               ++triggers;
                                               inside = false;
                                             },
                                         .on_destroy = [this] { ++destroyed; }});
    }
    ~Repeated() {
      timer.reset();  // waits for a trigger that runs, and with it on_destroy, which destroy() does not
      ledger.expect(destroyed == 1, "on_destroy did not run exactly once");
    }
    Ledger& ledger;
    std::atomic<bool> inside{false};
    std::atomic<int> triggers{0};
    std::atomic<int> destroyed{0};
    std::optional<RepeatedTimer> timer;
  };

  steady_clock::time_point in(std::int64_t low_us, std::int64_t high_us) {
    return steady_clock::now() + std::chrono::microseconds(random_.between(low_us, high_us));
  }
  bool count(bool accepted, std::uint64_t number) {
    (accepted ? ledger_.accepted : ledger_.refused).add(number);
    ++(accepted ? totals_.scheduled : totals_.refused);
    return accepted;
  }
  void cancel(Timeout& timeout, std::uint64_t number) {
    if (!timeout.cancel()) return;
    ledger_.cancelled.add(number);
    ++totals_.cancelled;
  }

  /// Lowers the noted deadline before the call, and raises it only after a call that returned true.
  void put_off() {
    if (kept_.empty() || kept_.size() - kept_at_ < 32) {
      Kept& kept = kept_.emplace_back();
      kept.number = next_++;
      kept.deadline = in(2'000, 20'000);
      kept.timeout = timer_.try_new_timeout(
          [&ledger = ledger_, &kept] { ledger.run(kept.number, kept.deadline.load()); }, kept.deadline.load());
      count(static_cast<bool>(kept.timeout), kept.number);
      return;
    }
    Kept& kept = kept_[kept_at_ + random_.next() % 32];
    const auto before = kept.deadline.load();
    const auto after = in(0, 40'000);
    kept.deadline = std::min(before, after);
    bool done = false;
    unless_refused([&] { done = kept.timeout.reschedule(after); });
    if (done) kept.deadline = after;
    ++totals_.rescheduled;
    if (!done && &kept == &kept_[kept_at_]) ++kept_at_;
  }

  /// Objects of a task are destroyed right after cancel_and_wait().
  void join() {
    std::atomic<bool>& alive = alive_.emplace_back(true);
    const std::uint64_t number = next_++;
    const auto deadline = in(-500, 1'500);
    Timeout timeout = timer_.try_new_timeout(
        [&ledger = ledger_, &alive, number] {
          if (!by_hand) ledger.expect(alive, "a task ran after cancel_and_wait()");
          ledger.run(number, {});
          if (!by_hand) ledger.expect(alive, "a task ran after cancel_and_wait()");
        },
        deadline);
    if (!count(static_cast<bool>(timeout), number)) return;
    if (random_.next() % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_.between(0, 2'000)));
    if (timeout.cancel_and_wait()) {
      ledger_.cancelled.add(number);
      ++totals_.cancelled;
    }
    alive = false;
  }

  /// A timeout of a scope. Its callable tells when it is destroyed without a run.
  struct Member {
    std::uint64_t number = 0;
    bool accepted = false;
    std::atomic<bool> not_run{false};
  };
  class MemberTask {
   public:
    MemberTask(Ledger& ledger, Member& member, TimeoutScope& scope, std::atomic<bool>& alive,
               steady_clock::time_point not_before)
        : ledger_(&ledger), member_(&member), scope_(&scope), alive_(&alive), not_before_(not_before) {}
    MemberTask(MemberTask&& other) noexcept : MemberTask(other) { other.member_ = nullptr; }
    ~MemberTask() {
      if (member_ != nullptr) member_->not_run = true;
    }
    void operator()() {
      const std::uint64_t number = std::exchange(member_, nullptr)->number;
      if (!by_hand) {
        ledger_->expect(*alive_, "a task ran after its scope");
        if (number % 8 == 0) scope_->cancel_all();
        if (number % 16 == 1) std::this_thread::sleep_for(200us);  // so that the scope ends meanwhile
        ledger_->expect(*alive_, "a task ran after its scope");
      }
      ledger_->run(number, not_before_);
    }

   private:
    MemberTask(const MemberTask&) = default;

    Ledger* ledger_;
    Member* member_;
    TimeoutScope* scope_;
    std::atomic<bool>* alive_;
    steady_clock::time_point not_before_;
  };

  /// Objects of all its tasks are destroyed right after a scope.
  void use_scope() {
    std::atomic<bool>& alive = alive_.emplace_back(true);
    const std::size_t first = members_.size();
    // Before the scope, because it may throw.
    for (auto left = random_.between(1, 20); left != 0; --left) members_.emplace_back().number = next_++;
    {
      TimeoutScope scope(timer_);
      for (std::size_t i = first; i != members_.size(); ++i) {
        Member& member = members_[i];
        const auto deadline = in(-500, 5'000);
        const Leeway leeway(std::chrono::microseconds(random_.between(0, 1) * random_.between(0, 5'000)));
        unless_refused([&] {
          member.accepted =
              static_cast<bool>(scope.add(MemberTask(ledger_, member, scope, alive, deadline), deadline, leeway));
        });
        count(member.accepted, member.number);
      }
      if (random_.next() % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_.between(0, 3'000)));
      if (random_.next() % 4 == 0) scope.cancel_all();
    }
    alive = false;
    for (std::size_t i = first; i != members_.size(); ++i) {
      if (!members_[i].accepted || !members_[i].not_run) continue;
      ledger_.cancelled.add(members_[i].number);
      ++totals_.cancelled;
    }
  }

  void share() {
    if (shared_.size() - shared_at_ > 32) {
      Shared& oldest = shared_[shared_at_++];
      cancel(oldest.timeout, oldest.number);
    }
    const auto deadline = in(0, 10'000);
    const std::uint64_t number = next_++;
    auto task = std::make_shared<SharedTask>(ledger_, number, deadline);
    Shared& shared = shared_.emplace_back(Shared{number, false, std::move(task), {}});
    shared.timeout = timer_.try_new_timeout(shared.task, deadline);
    shared.accepted = count(static_cast<bool>(shared.timeout), number);
  }

  /// A task that schedules the next one, some times. It uses its timer. So it must run on the worker, which the
  /// destructor of the timer waits for.
  struct Link {
    Family* family;
    std::uint64_t number;
    int left;

    void operator()() const {
      if (by_hand) return family->ledger_.run(number, {});
      if (left > 0) family->chain_on(left - 1);
      family->ledger_.run(number, {});
    }
  };
  void chain_on(int left) {
    const std::uint64_t number = next_++;
    count(static_cast<bool>(timer_.try_new_timeout(Link{this, number, left}, 100us)), number);
  }
  void chain() {
    if (chains_) chain_on(5);
  }

  void strike_worker() {
    const std::uint64_t number = next_++;
    const Timeout timeout = timer_.try_new_timeout(
        [this, number] {
          perf::Random random(number);
          if (!by_hand) strike_this_thread(totals_, random);
          ledger_.run(number, {});
        },
        1ms);
    count(static_cast<bool>(timeout), number);
  }

  void use_values() {
    const int key = static_cast<int>(random_.between(0, 99));
    const auto when = in(0, 20'000);
    ++totals_.keyed;
    switch (random_.next() % 8) {
      case 0:
      case 1: {
        Deadline& deadline = deadlines_.emplace_back(when);
        const KeyedResult result = values_->set(key, Value{Life(ledger_, next_++), &deadline}, when);
        if (result == KeyedResult::Added || result == KeyedResult::Replaced) deadline_of_[key] = &deadline;
        break;
      }
      case 2: {
        const std::optional<Value> value = values_->remove(key);
        if (value) ledger_.expect(value->deadline == deadline_of_[key], "remove() returned another value");
        break;
      }
      default: {
        Deadline* const deadline = deadline_of_[key];
        if (deadline == nullptr) return;
        const auto before = deadline->load();
        *deadline = std::min(before, when);
        if (values_->move(key, when) == KeyedResult::Moved) *deadline = when;
      }
    }
  }

  void use_repeated() {
    RepeatedTimer& repeated = *repeated_[random_.next() % repeated_.size()]->timer;
    switch (random_.next() % 6) {
      case 0:
        return repeated.stop();
      case 1:
        return repeated.restart();
      case 2:
        return repeated.reset(std::chrono::microseconds(random_.between(500, 5'000)));
      case 3: {
        std::atomic<int> stops = 0;
        bool cancelled = false;
        bool timed_out = false;
        {
          StopAfter limit(timer_, std::chrono::microseconds(random_.between(0, 2'000)));
          const std::stop_callback callback(limit.token(), [&] { ++stops; });
          std::this_thread::sleep_for(std::chrono::microseconds(random_.between(0, 2'000)));
          cancelled = limit.cancel();
          timed_out = limit.timed_out();
        }
        ledger_.expect(!cancelled || (!timed_out && stops == 0), "a StopAfter stopped after cancel()");
        break;
      }
      default:
        return repeated.start();
    }
  }

  void end_relatives() {
    if (!values_) return;
    for (std::optional<Repeated>& repeated : repeated_) repeated.reset();
    values_.reset();
  }

  Timer& timer_;
  Ledger& ledger_;
  Totals& totals_;
  perf::Random random_;
  std::atomic<std::uint64_t> next_;
  const bool chains_;

  // Referred to by tasks, so they stay until the end of the round.
  std::deque<Kept> kept_;
  std::deque<Shared> shared_;
  std::deque<Deadline> deadlines_;
  std::deque<std::atomic<bool>> alive_;
  std::deque<Member> members_;
  std::size_t kept_at_ = 0;
  std::size_t shared_at_ = 0;
  std::array<Deadline*, 100> deadline_of_{};
  std::optional<KeyedTimer<int, Value>> values_;
  std::array<std::optional<Repeated>, 3> repeated_;
};

}  // namespace hwt::soak
