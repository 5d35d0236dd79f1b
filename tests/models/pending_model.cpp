// The timeout of something that repeats, by itself (PendingTimeout). One thread arms, replaces and sometimes cancels
// it; another reads it and takes it out in the end. A reader finds the timeout as it was left.

#include <chrono>
#include <memory>

#include "hashed_wheel_timer/detail/pending_timeout.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using hwt::detail::PendingTimeout;
using std::chrono::nanoseconds;

struct Pending final : Run {
  hwt::ManualTimer timer{nanoseconds(1)};
  PendingTimeout pending;
  Ghost<bool> arms = false;

  struct Task final : hwt::TimerTask {
    explicit Task(int its_number) : number(its_number) {}
    void run(hwt::Timeout&) override {}
    const int number;
  };

  void thread(unsigned index) override {
    if (index == 0) {
      for (int number = 1; number <= 3; ++number) {
        hwt::Timeout armed = timer.new_timeout(std::make_shared<Task>(number), nanoseconds(1));
        arms = true;
        pending.set(armed);
        if (random(2) == 0) {
          armed.cancel();
          pending.set({});
        }
      }
    } else {
      while (!arms) yield();  // otherwise it would be through before there is anything to read
      int seen = 0;
      for (unsigned looks = random(3); looks != 0; --looks) {
        const PendingTimeout::Loan loan(pending);
        if (*loan) seen = look(*loan, seen);
      }
      if (hwt::Timeout taken = pending.take()) {
        look(taken, seen);
        taken.cancel();
      }
    }
  }

  int look(const hwt::Timeout& timeout, int before) {
    const int number = static_cast<Task&>(timeout.task()).number;
    MODEL_ASSERT(number >= before && number <= 3);
    return number;
  }

  void after() override { pending.set({}); }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  return model::check({"pending", 2, 20'000, &model::make<model::Pending>}, argc, argv);
}
