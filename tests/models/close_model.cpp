// The end of a timer while the thread that scheduled and another thread drop handles (NodePool::close,
// BatchStack::close, Core::close). Each node that is out is counted once. The last one to come back deletes the core,
// and no thread uses it afterwards. The checker reports leaks and uses after the end.

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/timeout.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using std::chrono::nanoseconds;

struct Close final : Run {
  std::unique_ptr<hwt::ManualTimer> timer = std::make_unique<hwt::ManualTimer>(nanoseconds(1));
  hwt::Timeout handed_over;
  // Flags of the program. By the first it hands over the handle. It destroys the timer only after the second, when no
  // thread calls the timer.
  std::atomic<bool> handle{false};
  std::atomic<bool> scheduled{false};
  enum class Drop { AtOnce, Meanwhile, Late };  // relative to the end of the timer
  const Drop drop = static_cast<Drop>(random(3));
  const bool stays = random(2) == 0;  // the first thread keeps its producer, so that the second one makes another
  Ghost<bool> going = false;
  Ghost<bool> gone = false;

  void thread(unsigned index) override {
    if (index == 0) {
      hwt::Timeout first = timer->new_timeout([] {}, nanoseconds(1));
      handed_over = timer->new_timeout([] {}, nanoseconds(1));
      handle.store(true, std::memory_order_release);
      hwt::Timeout second = timer->new_timeout([] {}, nanoseconds(1));
      if (random(2) == 0) timer->advance(nanoseconds(1));
      scheduled.store(true, std::memory_order_release);
      first.cancel();
      while (stays && !gone) yield();
    } else if (index == 1) {
      while (!handle.load(std::memory_order_acquire)) yield();
      const hwt::Timeout timeout = std::move(handed_over);
      if (random(2) == 0) hwt::Timeout(timeout).cancel();
      if (drop == Drop::Meanwhile) wait_until_the_timer_goes();
      while (drop == Drop::Late && !gone) yield();
    } else {
      while (!scheduled.load(std::memory_order_acquire)) yield();
      going = true;
      timer.reset();
      gone = true;
    }
  }

  void wait_until_the_timer_goes() {
    while (!going) yield();
    for (unsigned steps = random(kSteps); steps != 0 && !gone; --steps) yield();
  }
  static constexpr unsigned kSteps = 200;
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) { return model::check({"close", 3, 10'000, &model::make<model::Close>}, argc, argv); }
