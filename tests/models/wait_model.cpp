// A wait of Asio without Asio (AsyncWait, WaitGroup, WaitRegistry). One thread begins it and another turns the wheel. A
// third thread calls the completion, and destroys the group and the context at once. Then no thread uses the wait, the
// group or the context any more.
//
// Or the first thread destroys them while the wait may end. Or it cancels a wait and begins the next one with the same
// timeout, while the third thread completes the first wait.
//
// Or the wait is the limit of an operation within cancel_after. The first thread closes the registry and destroys the
// context, while the third one discards the wait, because the operation has ended.

#include "hashed_wheel_timer/detail/asio/async_wait.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using hwt::detail::AsyncWait;
using hwt::detail::Result;
using hwt::detail::WaitGroup;
using hwt::detail::WaitRegistry;
using std::chrono::steady_clock;

struct Waits final : Run {
  const bool limits = random(3) == 0;
  const bool stoppable = random(2) == 0;
  const bool starter_ends = random(2) == 0;
  const bool again = !limits && random(2) == 0;
  int context = 1;                     // 0: it has gone
  std::atomic<bool> completed{false};  // the context's own way to its thread
  Ghost<int> ends = 0;
  hwt::Timeout limit;  // handed over by begun
  std::atomic<bool> begun{false};
  std::atomic<AsyncWait*> put_off{nullptr};  // the first wait, whose handler is to be called
  hwt::ManualTimer timer{nanoseconds(1)};
  std::unique_ptr<WaitRegistry> registry = std::make_unique<WaitRegistry>();
  std::unique_ptr<WaitGroup> group = std::make_unique<WaitGroup>(*registry, timer);

  class Wait final : public AsyncWait {
   public:
    Wait(Waits& waits, bool first) : waits_(waits), first_(first) {}

   private:
    void complete(Result end) override {
      Waits& waits = waits_;
      if (first_ && end == Result::Stopped) return waits.put_off.store(this, std::memory_order_release);
      const bool last = !first_;
      delete this;
      ++waits.ends;
      if (last) waits.completed.store(true, std::memory_order_release);
      MODEL_ASSERT(waits.context == 1);
    }
    void abandon() noexcept override {
      ++waits_.ends;
      MODEL_ASSERT(waits_.context == 1);
      delete this;
    }

    Waits& waits_;
    const bool first_;
  };

  void thread(unsigned index) override {
    if (limits && index != 1) {
      index == 0 ? begin_limit() : discard_limit();
    } else if (index == 0) {
      if (again) {
        start(true, 2, false);
        if (random(2) == 0) timer.advance(nanoseconds(random(2)));  // then it is in the wheel
        group->cancel_for_next();
        if (random(4) == 0) MODEL_ASSERT(group->cancel(1) == 0);
      }
      start(false, 1 + random(3), stoppable);
      if (starter_ends) end();
    } else if (index == 1) {
      for (int turns = 0; turns < 3; ++turns) {
        if (again) linger();
        timer.advance(nanoseconds(1));
      }
    } else {
      if (again) call_first();
      if (starter_ends) return;
      for (int turns = 0; !completed.load(std::memory_order_acquire); ++turns) {
        if (turns == 100) return;
        yield();
      }
      end();
    }
  }

  void begin_limit() {
    limit = (new Wait(*this, false))->start(*registry, timer, steady_clock::time_point(nanoseconds(random(3))));
    begun.store(true, std::memory_order_release);
    linger();
    end();
  }
  void discard_limit() {
    for (int turns = 0; !begun.load(std::memory_order_acquire); ++turns) {
      if (turns == 100) return;
      yield();
    }
    AsyncWait::discard(std::exchange(limit, {}));
  }

  void start(bool first, unsigned deadline, bool slot) {
    group->start(*new Wait(*this, first), steady_clock::time_point(nanoseconds(deadline)), slot);
  }

  void call_first() {
    for (int turns = 0; turns < 100; ++turns) {
      if (AsyncWait* const wait = put_off.exchange(nullptr, std::memory_order_acquire)) {
        delete static_cast<Wait*>(wait);
        ++ends;
        return;
      }
      yield();
    }
  }

  void end() {
    group.reset();
    registry->close();
    context = 0;
    registry.reset();
  }

  void after() override {
    if (again) call_first();
    timer.advance(nanoseconds(3));
    MODEL_ASSERT(ends == (again ? 2 : 1));  // before end(), because the end of the group would end a lost wait
    if (registry != nullptr) end();
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) { return model::check<model::Waits>({.threads = 3, .schedules = 30'000}, argc, argv); }
