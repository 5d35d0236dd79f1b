#include <chrono>
#include <latch>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "format.h"
#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/jitter.h"
#include "hashed_wheel_timer/schedule.h"
#include "parts.h"
#include "table.h"

namespace schedules {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using std::chrono::system_clock;

/// What has run; jobs add to it on the timer's worker.
class Journal {
 public:
  explicit Journal(steady_clock::time_point start) : start_(start) {}

  /// `due` counts from the start.
  void add(const std::string& task, std::chrono::nanoseconds due) {
    const auto now = steady_clock::now() - start_;
    const std::lock_guard lock(mutex_);
    table_.add({task, in_seconds(due, 3), in_seconds(now, 3), in_seconds(now - due, 3)});
    if (now < due) early_ = true;
  }
  bool print(std::ostream& out) const {
    const std::lock_guard lock(mutex_);
    table_.print(out);
    return !early_;
  }

 private:
  const steady_clock::time_point start_;
  mutable std::mutex mutex_;
  Table table_{{"task", "not before", "actual", "late"}};
  bool early_ = false;
};

}  // namespace

bool show_real_time(std::ostream& out) {
  out << "The real clocks, a tick of 10 ms:" << std::endl;
  constexpr int kRuns = 5;
  std::latch done(4);
  const auto start = steady_clock::now();
  Journal journal(start);

  // A time of the day that comes in two or three seconds.
  const auto occurrence = std::chrono::floor<std::chrono::seconds>(system_clock::now()) + 3s;
  const auto time_of_day = occurrence - std::chrono::floor<std::chrono::days>(occurrence);
  const hwt::calendar::Rule rule = hwt::calendar::daily(time_of_day, {"UTC"});

  hwt::HashedWheelTimer timer(10ms);
  schedule(timer, hwt::Schedule::once(300ms), [&] {
    journal.add("once", 300ms);
    done.count_down();
  });
  schedule(timer, hwt::Schedule::fixed_rate(0ms, 250ms, hwt::CatchUp::Burst).limit(kRuns), [&, run = 0]() mutable {
    journal.add("fixed rate", run * 250ms);
    if (++run == kRuns) done.count_down();
  });
  const auto jitter = [](std::chrono::nanoseconds wait) { return wait + hwt::jitter::between(0ms, 200ms); };
  schedule(timer, hwt::Schedule::fixed_rate(500ms, 500ms, hwt::CatchUp::Burst).jitter(jitter).limit(2),
           [&, run = 0]() mutable {
             journal.add("fixed rate with jitter", ++run * 500ms);
             if (run == 2) done.count_down();
           });
  const auto task = schedule(timer, hwt::Schedule::calendar(rule), [&] {
    const auto late = system_clock::now() - occurrence;
    journal.add("daily at " + in_utc(occurrence).substr(15) + " UTC", steady_clock::now() - start - late);
    done.count_down();
  });
  done.wait();

  while (!task->next()) std::this_thread::sleep_for(1ms);  // none until its run is over
  const bool tomorrow = task->next() > steady_clock::now() + 23h;
  task->cancel();
  timer.stop();
  out << '\n';
  return journal.print(out) && tomorrow;
}

}  // namespace schedules
