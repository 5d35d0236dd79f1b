// A coroutine that sleeps (coroutine.cpp). One thread awaits, another requests the stop, and a third turns the wheel.
// It is resumed once. The thread that resumes it owns the frame alone. No thread uses the node after it was given back.
// A stop request always leads to a cancel(), by its own thread or by the thread that awaits. A coroutine that a stop
// has resumed sees all that the awaiting thread did before it could be resumed. The stop token is the standard
// library's own.

#include <coroutine>
#include <stop_token>

#include "hashed_wheel_timer/coroutine.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/models/checker.h"

namespace model {
namespace {

struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { fail("an exception"); }
  };
};

struct Sleeps final : Run {
  const bool turns = random(2) == 0;
  hwt::ManualTimer timer{nanoseconds(1)};
  std::stop_source stop;
  Ghost<int> resumed = 0;
  Ghost<bool> stopped = false;
  Ghost<bool> published = false;
  int called = 0;  // by the awaiting thread, when the timeout is published but cannot be cancelled yet

  Sleeps() {
    timer.on_earlier([this] {
      ++called;
      published = true;
    });
    called = 0;
    published = false;
  }

  Detached sleep() {
    int local = 1;  // in the frame
    const hwt::Wake wake = co_await hwt::sleep_for(timer, nanoseconds(1), stop.get_token());
    ++local;
    MODEL_ASSERT(local == 2);
    ++resumed;
    if (wake != hwt::Wake::Stopped) co_return;
    stopped = true;
    ++called;
  }

  void thread(unsigned index) override {
    if (index == 0) {
      sleep();
    } else if (index == 1) {
      if (random(2) == 0) {
        linger_long();
      } else {
        while (!published) yield();
      }
      stop.request_stop();
    } else if (turns) {
      linger_long();
      for (int times = 0; times < 2; ++times) timer.advance(nanoseconds(1));
    }
  }

  /// Otherwise this thread would always be through before the coroutine sleeps.
  static void linger_long() {
    for (unsigned times = random(8); times != 0; --times) linger();
  }

  void after() override {
    MODEL_ASSERT(turns || stopped);
    MODEL_ASSERT(resumed == 1);
    MODEL_ASSERT(timer.pending_timeouts() == 0);
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  return model::check<model::Sleeps>({.threads = 3, .schedules = 10'000, .pauses = true}, argc, argv);
}
