// A TimerTask that is cancelled (Node::cancel, arrive, recheck, abandon). One thread schedules it, another cancels it,
// and a third turns the wheel and may stop the timer. The task's cancelled(), the hook, is called once. It sees all
// writes before cancel(), wherever the worker finds the node. If the timer stops while a thread schedules the task,
// stop() finds the task, or the task is refused. The second thread also cancels two tasks that are in the wheel. The
// next pass finds both, whether the place with the recheck requests was listed already, is listed again, or both.

#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/timeout.h"
#include "tests/models/checker.h"

namespace model {
namespace {

struct Hook final : Run {
  const bool stops = random(2) == 0;
  const bool stops_early = stops && random(2) == 0;  // while the first thread schedules
  int done = 0;                                      // before cancel()
  Ghost<bool> begun = false;
  Ghost<bool> refused = false;
  Ghost<bool> won = false;
  Ghost<int> hooks = 0;
  Ghost<int> runs = 0;
  hwt::ManualTimer timer{nanoseconds(1)};
  hwt::Timeout handed_over;
  std::atomic<bool> handle{false};  // the user's own
  std::array<hwt::Timeout, 2> in_wheel;
  Ghost<unsigned> dropped = 0;

  struct Cancelled final : hwt::TimerTask {
    explicit Cancelled(Hook& its_hook) : hook(its_hook) {}
    void run(hwt::Timeout&) override { fail("too early"); }
    void cancelled(hwt::Timeout&) override { ++hook.dropped; }
    Hook& hook;
  };
  Hook() {
    for (hwt::Timeout& each : in_wheel) each = timer.new_timeout(std::make_shared<Cancelled>(*this), nanoseconds(99));
    timer.advance(nanoseconds(0));
  }

  struct Task final : hwt::TimerTask {
    explicit Task(Hook& its_hook) : hook(its_hook) {}
    void run(hwt::Timeout&) override { ++hook.runs; }
    void cancelled(hwt::Timeout&) override {
      ++hook.hooks;
      if (hook.won) MODEL_ASSERT(hook.done == 1);  // otherwise stop() may have cancelled it
    }
    Hook& hook;
  };

  void thread(unsigned index) override {
    if (index == 0) {
      hwt::Timeout timeout;
      begun = true;
      try {
        timeout = timer.new_timeout(std::make_shared<Task>(*this), nanoseconds(9));
      } catch (const hwt::IllegalState&) {
        refused = true;
      }
      handed_over = timeout;
      handle.store(true, std::memory_order_release);
      timeout.reschedule(nanoseconds(8));
    } else if (index == 1) {
      while (!handle.load(std::memory_order_acquire)) yield();
      const hwt::Timeout timeout = handed_over;
      done = 1;
      if (hwt::Timeout(timeout).cancel()) won = true;
      for (hwt::Timeout& each : in_wheel) each.cancel();
    } else {
      if (stops_early) {
        while (!begun) yield();
      } else {
        for (int turns = 0; turns < 3; ++turns) timer.advance(nanoseconds(0));
      }
      if (stops) timer.stop();
    }
  }

  void after() override {
    timer.advance(nanoseconds(0));
    MODEL_ASSERT(dropped == in_wheel.size());
    timer.advance(nanoseconds(9));
    if (!stops) timer.stop();  // a second stop() would hide that the first one missed the task
    MODEL_ASSERT(hooks + runs == (refused ? 0 : 1));
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) { return model::check<model::Hook>({.threads = 3, .schedules = 20'000}, argc, argv); }
