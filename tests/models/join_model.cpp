// cancel_and_wait() by two threads against the worker, or against an executor that runs or drops the job. The task
// runs, goes with a dropped job, or one of the two cancels or disarms it. When either call returns, no thread uses
// objects of the task. No thread sleeps for ever, and the node is given back once.

#include <functional>

#include "hashed_wheel_timer/timeout.h"
#include "tests/models/model_timer.h"

namespace model {
namespace {

constexpr unsigned kWorker = 2;

struct Join final : Run {
  const bool with_executor = random(2) == 1;
  std::function<void()> job;
  ModelTimer timer{with_executor ? [this](std::function<void()> its_job) { job = std::move(its_job); }
                                 : ModelTimer::Executor()};
  int referent = 0;  // used by the task
  Ghost<int> runs = 0;
  Ghost<int> truths = 0;
  hwt::Timeout timeout = timer.new_timeout(
      [this, task = Task(referent)] {
        ++referent;
        ++runs;
      },
      std::chrono::nanoseconds(1));
  hwt::Timeout other = timeout;

  struct Task {
    explicit Task(int& its_referent) : referent(&its_referent) {}
    Task(Task&& from) noexcept : referent(std::exchange(from.referent, nullptr)) {}
    ~Task() {
      if (referent != nullptr) ++*referent;
    }
    int* referent;
  };

  void thread(unsigned index) override {
    if (index == kWorker) {
      timer.turn(1);
      timer.turn(2);
      if (job && random(4) != 0) job();
      job = nullptr;
      return;
    }
    for (unsigned times = random(2) * random(8); times != 0; --times) linger();
    hwt::Timeout handle = std::move(index == 0 ? timeout : other);
    if (handle.cancel_and_wait()) ++truths;
    MODEL_ASSERT(referent >= 1);  // and no race: it may be destroyed now
  }

  void after() override {
    timer.turn(3);
    job = nullptr;
    MODEL_ASSERT(with_executor || runs + truths == 1);
    MODEL_ASSERT(runs + truths <= 1);
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) { return model::check<model::Join>({.threads = 3, .schedules = 20'000}, argc, argv); }
