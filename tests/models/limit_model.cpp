// The limit of an operation within cancel_after, without Asio (AsyncWait, WaitRegistry). One thread begins the limit's
// wait, and later closes the registry and destroys the context. Another thread discards the wait, because the operation
// has ended. A third turns the wheel. The wait ends once, and no thread uses the context once it has gone.

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "hashed_wheel_timer/detail/asio/async_wait.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using hwt::detail::AsyncWait;
using hwt::detail::Result;
using hwt::detail::WaitRegistry;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

struct Limits final : Run {
  int context = 1;  // 0: it has gone
  Ghost<int> ends = 0;
  std::atomic<bool> begun{false};
  hwt::ManualTimer timer{nanoseconds(1)};
  std::unique_ptr<WaitRegistry> registry = std::make_unique<WaitRegistry>();
  hwt::Timeout limit;  // handed over by begun

  class Wait final : public AsyncWait {
   public:
    explicit Wait(Limits& limits) : limits_(limits) {}

   private:
    void complete(Result) override { end(); }
    void abandon() noexcept override { end(); }
    void end() noexcept {
      Limits& limits = limits_;
      delete this;
      ++limits.ends;
      MODEL_ASSERT(limits.context == 1);
    }

    Limits& limits_;
  };

  void thread(unsigned index) override {
    if (index == 0) {
      limit = (new Wait(*this))->start(*registry, timer, steady_clock::time_point(nanoseconds(random(3))));
      begun.store(true, std::memory_order_release);
      linger();
      end_context();
    } else if (index == 1) {
      for (int turns = 0; turns < 3; ++turns) timer.advance(nanoseconds(1));
    } else {
      for (int turns = 0; !begun.load(std::memory_order_acquire); ++turns) {
        if (turns == 100) return;
        yield();
      }
      AsyncWait::discard(std::exchange(limit, {}));
    }
  }

  void end_context() {
    registry->close();
    context = 0;
    registry.reset();
  }

  void after() override { MODEL_ASSERT(ends == 1); }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) { return model::check({"limit", 3, 20'000, &model::make<model::Limits>}, argc, argv); }
