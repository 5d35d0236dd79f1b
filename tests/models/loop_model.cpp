// A timer that a loop drives (LoopTimer, announce_sleep, Sleeper) against another thread. That thread
// schedules an earlier timeout, cancels a task with a cancelled(), cancels the last pending timeout, or stops the
// timer. The loop is called, also if it replaces its function meanwhile, or it has found the change itself and does not
// sleep. A cancelled() that is due soon is not forgotten. A stop() calls the loop in any case. Many earlier timeouts
// call it at most once for each run_due(), and twice more when it replaces its function.

#include <optional>

#include "hashed_wheel_timer/detail/driven_timer.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using std::chrono::hours;
using std::chrono::steady_clock;

class Timer final : public hwt::detail::DrivenTimer {
 public:
  Timer() : DrivenTimer("Timer", {.tick_duration = hours(1), .max_pending_timeouts = 1'000}) {}
  ~Timer() override { end(); }
  using DrivenTimer::driver;
  using DrivenTimer::on_earlier;
};

struct Loop final : Run {
  enum class Comes { Earlier, Hook, End, Stop, Many };
  const Comes comes = static_cast<Comes>(random(5));
  Ghost<bool> called = false;
  Ghost<int> calls = 0;
  Ghost<int> turns_made = 0;
  Ghost<int> hooks = 0;
  int owned = 0;  // a cancelled() sees all writes before cancel()
  Timer timer;
  hwt::detail::LoopDriver driver = timer.driver();
  hwt::Timeout pending = timer.new_timeout([] {}, hours(1000));
  hwt::Timeout other;
  std::optional<steady_clock::time_point> until;

  struct Task final : hwt::TimerTask {
    explicit Task(Loop& its_loop) : loop(its_loop) {}
    void run(hwt::Timeout&) override { fail("too early"); }
    void cancelled(hwt::Timeout&) override {
      ++loop.owned;
      ++loop.hooks;
    }
    Loop& loop;
  };

  Loop() {
    if (comes == Comes::Hook) {
      other = timer.new_timeout(std::make_shared<Task>(*this), hours(1000));
      // Its cancel asks for a pass over all places. So run_due() puts the other timeouts into the wheel.
      timer.new_timeout(std::make_shared<Task>(*this), hours(1000)).cancel();
      driver.run_due();
    }
    set_function();
    called = false;
    calls = 0;
    hooks = 0;
  }

  void set_function() {
    timer.on_earlier([this] {
      called = true;
      ++calls;
    });
  }

  void thread(unsigned index) override {
    if (index == 1) {
      for (unsigned turns = 1 + random(2); turns != 0; --turns) {
        until = driver.run_due();
        ++turns_made;
      }
      if (random(2) == 0) {
        set_function();
        ++turns_made, ++turns_made;  // a call by another thread, and its own
      }
    } else if (comes == Comes::Earlier) {
      other = timer.new_timeout([] {}, hours(2));
    } else if (comes == Comes::Many) {
      for (int i = 0; i != 4; ++i) timer.new_timeout([] {}, hours(20 - 4 * i));  // each is earlier
    } else if (comes == Comes::Hook) {
      ++owned;
      other.cancel();
    } else if (comes == Comes::End) {
      pending.cancel();
    } else {
      timer.stop();
    }
  }

  void after() override {
    const steady_clock::time_point now = steady_clock::now();
    switch (comes) {
      case Comes::Earlier:
        MODEL_ASSERT(called || (until && *until < now + hours(4)));
        break;
      case Comes::Hook:
        MODEL_ASSERT(called || hooks == 1 || (until && *until <= now));
        driver.run_due();
        MODEL_ASSERT(hooks == 1);
        break;
      case Comes::End:
        MODEL_ASSERT(called || !until || *until <= now);
        break;
      case Comes::Many:
        MODEL_ASSERT(calls <= 1 + turns_made);  // the first may come before the first turn
        break;
      case Comes::Stop:
        MODEL_ASSERT(called);
        MODEL_ASSERT(!driver.run_due());
        break;
    }
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) { return model::check<model::Loop>({.threads = 2, .schedules = 30'000}, argc, argv); }
