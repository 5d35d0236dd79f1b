// Timeout::reschedule() from two threads against the thread that turns the wheel, in a whole timer. Never early: the
// task does not run before the deadline of the last reschedule() that has returned. Never missed: when the wheel has
// been turned up to the latest deadline, the task has run.

#include <algorithm>

#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/timeout.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using std::chrono::steady_clock;

constexpr std::int64_t kFirst = 6;
constexpr std::int64_t kLast = 12;

steady_clock::time_point at(std::int64_t time) { return steady_clock::time_point(nanoseconds(time)); }

struct Reschedule final : Run {
  hwt::ManualTimer timer{nanoseconds(1), at(0)};
  Ghost<std::int64_t> now = 0;
  Ghost<int> runs = 0;
  Ghost<int> begun = 0;
  Ghost<int> under_way = 0;
  std::atomic<int> returned{0};  // the user's own
  Ghost<bool> known = true;      // which of the deadlines holds: not if two calls came at once
  Ghost<std::int64_t> deadline = kFirst;
  const bool alone = random(2) == 0;  // the second thread makes no call
  std::int64_t targets[2][2];         // of the calls of each thread
  hwt::Timeout timeout = timer.new_timeout([this] { run(); }, at(kFirst));

  Reschedule() {
    for (auto& of_thread : targets) {
      for (std::int64_t& target : of_thread) target = static_cast<std::int64_t>(1 + random(kLast));
    }
  }

  void run() {
    ++runs;
    MODEL_ASSERT(under_way != 0 || !known || now >= deadline);
  }

  void thread(unsigned index) override {
    if (index < 2) {
      if (index == 1 && alone) return;
      for (const std::int64_t to : targets[index]) reschedule(to, targets[1 - index]);
    } else {
      while (now < kLast) {
        now = std::min<std::int64_t>(now + 1 + random(3), kLast);
        const int seen = returned.load(std::memory_order_acquire);
        const bool settled = seen == begun && known && deadline <= now;
        timer.advance_to(at(now));
        MODEL_ASSERT(!settled || seen != begun || runs == 1);
      }
    }
  }

  void reschedule(std::int64_t to, const std::int64_t (&others)[2]) {
    ++begun;
    if (++under_way == 2) known = false;
    const bool alone = known;
    const bool had_run = runs != 0;
    const bool moved = timeout.reschedule(at(to));
    if (moved && alone && known) deadline = to;
    // No thread has moved it to an earlier time. If it has run meanwhile, it ran for this deadline, unless this thread
    // was preempted until `to`: see Core::expired_at_or_after().
    const bool is_earliest = to <= std::min(others[0], others[1]);
    MODEL_ASSERT(!moved || !is_earliest || had_run || runs == 0 || now >= to);
    --under_way;
    returned.fetch_add(1, std::memory_order_release);
  }

  void after() override {
    timer.advance_to(at(kLast));
    MODEL_ASSERT(runs == 1);
    timeout = {};
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  return model::check<model::Reschedule>({.threads = 3, .schedules = 40'000}, argc, argv);
}
