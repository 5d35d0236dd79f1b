// Tasks with an executor of their own (TaskRunner::run, hand_over, BatchExecutor). The worker asks a task for its
// executor, hands the task over and posts a batch. A second thread runs the batches or drops them, or comes to them
// only at the end. A third thread ends the scope of the tasks, or calls cancel_and_wait(), at any time.
//
// Each task is destroyed once, and runs at most once. When the wait is over, no thread uses the task, its executor or
// objects of the task. No thread sleeps for ever, even if no thread comes to the batch.

#include <functional>

#include "hashed_wheel_timer/batch_executor.h"
#include "hashed_wheel_timer/timeout_scope.h"
#include "tests/models/model_timer.h"

namespace model {
namespace {

constexpr std::chrono::nanoseconds kDue{1};

struct HandOver final : Run {
  static constexpr unsigned kTasks = 2;

  /// A callable that is destroyed as soon as it can never run again.
  class Task {
   public:
    Task(HandOver& model, unsigned number) : model_(&model), number_(number) {}
    Task(Task&& from) noexcept : model_(std::exchange(from.model_, nullptr)), number_(from.number_) {}
    ~Task() {
      if (model_ == nullptr) return;
      ++model_->referents[number_];
      ++model_->destroyed[number_];
    }
    void operator()() {
      MODEL_ASSERT(!model_->over);
      ++model_->referents[number_];
      ++model_->ends[number_];
    }

   private:
    HandOver* model_;
    unsigned number_;
  };

  const bool with_scope = random(2) == 0;
  const unsigned tasks = with_scope ? 1 + random(kTasks) : 1;
  const bool comes_late = random(2) == 0;
  // Each batch goes to the loop by the user's own release and acquire.
  std::array<std::function<void()>, kTasks> batches;
  std::atomic<unsigned> posted{0};
  std::atomic<bool> turned{false};
  unsigned taken = 0;
  std::array<int, kTasks> referents{};    // used by the tasks
  std::array<Ghost<int>, kTasks> ends{};  // runs, and a cancel_and_wait() that takes it back
  std::array<Ghost<int>, kTasks> destroyed{};
  Ghost<bool> dropped = false;
  Ghost<bool> over = false;
  ModelTimer timer;
  std::unique_ptr<hwt::BatchExecutor> loop =
      std::make_unique<hwt::BatchExecutor>([this](std::function<void()> batch) { post(std::move(batch)); });
  std::unique_ptr<hwt::TimeoutScope> scope;
  hwt::Timeout timeout;

  HandOver() {
    if (with_scope) {
      scope = std::make_unique<hwt::TimeoutScope>(timer, *loop);
      loop = nullptr;  // the scope has a copy
      for (unsigned number = 0; number < tasks; ++number) scope->add(Task(*this, number), kDue);
    } else {
      timeout = timer.new_timeout(hwt::on(*loop, Task(*this, 0)), kDue);
    }
  }

  void post(std::function<void()> batch) {
    const unsigned number = posted.load(std::memory_order_relaxed);
    MODEL_ASSERT(number < tasks);
    batches[number] = std::move(batch);
    posted.store(number + 1, std::memory_order_release);
  }

  void thread(unsigned index) override {
    if (index == 0) {
      for (unsigned times = random(8); times != 0; --times) linger();
      if (with_scope) {
        scope = nullptr;
      } else {
        if (timeout.cancel_and_wait()) ++ends[0];
        loop = nullptr;
      }
      over = true;
      // No race: these objects may be destroyed now.
      for (unsigned number = 0; number < tasks; ++number) MODEL_ASSERT(referents[number] >= 1);
    } else if (index == 1) {
      timer.turn(1);
      timer.turn(2);
      turned.store(true, std::memory_order_release);
    } else if (!comes_late) {
      while (!turned.load(std::memory_order_acquire)) {
        run_batches();
        yield();
      }
      run_batches();
    }
  }

  void run_batches() {
    while (taken != posted.load(std::memory_order_acquire)) {
      const std::function<void()> batch = std::exchange(batches[taken++], nullptr);
      if (random(4) != 0) {
        batch();
      } else {
        dropped = true;
      }
    }
  }

  void after() override {
    timer.turn(3);
    run_batches();
    timeout = {};
    for (unsigned number = 0; number < tasks; ++number) {
      MODEL_ASSERT(destroyed[number] == 1);
      MODEL_ASSERT(ends[number] <= 1);
    }
    MODEL_ASSERT(with_scope || dropped || ends[0] == 1);
    MODEL_ASSERT(timer.pending_timeouts() == 0);
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  return model::check<model::HandOver>({.threads = 3, .schedules = 20'000}, argc, argv);
}
