// A schedule (ScheduledRun and its Conductor). One thread makes it, one turns the wheel and reads it, and two run jobs
// of an executor. One of these two, or the first thread, may cancel it. The thread that turns the wheel may stop the
// timer, and then run the returned timeout by hand.
//
// Runs do not overlap, and only cancel() and stop() end them early. After a cancel() that returned true, no run is
// under way. The job is destroyed once, and not while it may run. Without a cancel and a stop, a thread that finds the
// schedule done may destroy objects that the job uses. Once done, it stays done. A thread that sees a finished run does
// not find the same run due next. A schedule() that throws has destroyed the job.

#include <functional>
#include <vector>

#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/schedule.h"
#include "tests/models/model_timer.h"

namespace model {
namespace {

constexpr unsigned kJobs = 4;
constexpr int kTurns = 4;
constexpr int kPatience = 8;

struct Schedules final : Run {
  const unsigned canceller = random(4);  // 1: nobody
  const bool cancels = canceller != 1;
  const int stops = static_cast<int>(random(3 * kTurns));  // after this turn; 0 or too late: never
  const int limit = 1 + static_cast<int>(random(3));
  const int runs_before = static_cast<int>(random(2));  // for which cancel() waits a while
  // The executor: each job goes to another thread by the user's own release and acquire.
  std::array<std::function<void()>, kJobs> jobs;
  std::atomic<unsigned> given{0};
  std::atomic<unsigned> taken{0};
  Ghost<int> runs = 0;
  Ghost<bool> cancelled = false;
  Ghost<bool> destroyed = false;  // the job
  Ghost<bool> stopped = false;
  int referent = 0;  // of the job: runs do not overlap, and each sees the writes of the one before
  ModelTimer timer{[this](std::function<void()> job) { give(std::move(job)); }};
  std::shared_ptr<hwt::ScheduledTask> task;
  std::atomic<bool> made{false};  // the user's own
  std::atomic<bool> turned{false};

  void give(std::function<void()> job) {
    const unsigned number = given.load(std::memory_order_relaxed);
    if (number == kJobs) return;  // drops it
    jobs[number] = std::move(job);
    given.store(number + 1, std::memory_order_release);
  }

  void thread(unsigned index) override {
    if (index == 0) {
      const auto end = [this](void*) {
        MODEL_ASSERT(!destroyed);
        destroyed = true;
        if (!cancels && !may_stop()) ++referent;  // afterwards another thread may still destroy the job
      };
      try {
        task = hwt::schedule(timer, hwt::Schedule::fixed_delay(nanoseconds(1), nanoseconds(1)).limit(limit),
                             [this, job = std::shared_ptr<void>(nullptr, end)] {
                               ++referent;
                               ++runs;
                               MODEL_ASSERT(!cancelled);
                             });
      } catch (const hwt::IllegalState&) {
        MODEL_ASSERT(may_stop() && destroyed && runs == 0);
        return;
      }
      made.store(true, std::memory_order_release);
      task->done();
      if (canceller != 0) return;
      // Otherwise it would always come before the first run.
      for (int looks = 0; runs < runs_before && looks < kPatience * kTurns; ++looks) yield();
      cancel();
    } else if (index == 1) {
      for (int turns = 1; turns <= kTurns; ++turns) {
        // Or it would be through before there is anything to run.
        for (int looks = 0; timer.pending_timeouts() == 0 && looks < kPatience; ++looks) yield();
        timer.turn(turns);
        if (turns == stops) stop();
        if (made.load(std::memory_order_acquire)) look();
      }
      turned.store(true, std::memory_order_release);
    } else {
      bool was_done = false;
      while (!turned.load(std::memory_order_acquire)) {
        run_one();
        if (may_stop() && made.load(std::memory_order_acquire)) {
          const bool done = task->done();
          MODEL_ASSERT(done || !was_done);
          was_done = done;
        }
        if (index == canceller && runs >= runs_before && made.load(std::memory_order_acquire) && random(2) == 0)
          cancel();
      }
    }
  }

  bool may_stop() const { return stops != 0 && stops <= kTurns; }

  void stop() {
    std::vector<hwt::Timeout> returned = timer.stop();
    hwt::internal::tell_stopped(returned);
    stopped = true;
    if (random(2) == 0) return;
    for (hwt::Timeout& timeout : returned) timeout.task().run(timeout);
  }

  void cancel() {
    if (!task->cancel()) return;
    cancelled = true;
    ++referent;
  }

  void look() {
    const bool has_run = task->runs() != 0;
    const auto next = task->next();
    MODEL_ASSERT(!has_run || !next || next->time_since_epoch() > nanoseconds(1));
    if (!cancels && !may_stop() && task->done()) ++referent;
  }

  void run_one() {
    unsigned number = taken.load(std::memory_order_relaxed);
    if (number == given.load(std::memory_order_acquire)) return yield();
    if (!taken.compare_exchange_strong(number, number + 1, std::memory_order_relaxed)) return;
    std::exchange(jobs[number], nullptr)();
  }

  void after() override {
    for (int turns = kTurns + 1; turns < kTurns + 9; ++turns) {
      if (!stopped) timer.turn(turns);
      while (taken != given) std::exchange(jobs[taken++], nullptr)();
    }
    MODEL_ASSERT(cancelled || cancels || stopped || runs == limit);
    if (task) {
      MODEL_ASSERT(task->done());
      task.reset();
    }
    MODEL_ASSERT(destroyed);
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  return model::check<model::Schedules>({.threads = 4, .schedules = 10'000}, argc, argv);
}
