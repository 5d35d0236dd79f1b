// Timeouts with ids, in a whole timer: a thread schedules and cancels by id, another cancels the same ids at any later
// time, and a third turns the wheel. Each timeout ends once. An id never cancels, finds or waits for a later timeout in
// the same node, also where the node's generations are used up.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>

#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/timeout.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using hwt::CancelResult;
using hwt::TimeoutId;
using std::chrono::nanoseconds;

constexpr unsigned kLives = 3;

struct Id final : Run {
  hwt::ManualTimer timer{nanoseconds(1)};
  std::array<Ghost<int>, kLives> ran;
  std::array<Ghost<int>, kLives> cancelled;
  std::array<int, kLives> destroyed{};                   // watched: read by a thread that has waited for the task
  std::array<std::atomic<std::uint64_t>, kLives> ids{};  // the user's own

  /// A task that is destroyed as soon as it can never run again.
  class Task {
   public:
    Task(Id& model, unsigned life) : model_(&model), life_(life) {}
    Task(Task&& other) noexcept : model_(std::exchange(other.model_, nullptr)), life_(other.life_) {}
    ~Task() {
      if (model_ != nullptr) ++model_->destroyed[life_];
    }
    void operator()() { ++model_->ran[life_]; }

   private:
    Id* model_;
    unsigned life_;
  };

  void thread(unsigned index) override {
    if (index == 0) {
      for (unsigned life = 0; life < kLives; ++life) {
        const TimeoutId id = add(life);
        ids[life].store(id.value(), std::memory_order_release);
        if (random(2) == 0) cancel(life);
      }
    } else if (index == 1) {
      for (int times = 0; times < 4; ++times) {
        const unsigned life = random(kLives);
        switch (random(3)) {
          case 0:
            cancel(life);
            break;
          case 1:
            timer.find(id_of(life));  // and drops the handle
            break;
          default:
            wait(life);
            break;
        }
      }
    } else {
      for (int turns = 0; turns < 3; ++turns) timer.advance(nanoseconds(random(2)));
    }
  }

  /// The last one has a task that needs no destruction: its cancel drops the last reference.
  TimeoutId add(unsigned life) {
    if (life + 1 != kLives) return timer.add(Task(*this, life), nanoseconds(1));
    ++destroyed[life];
    return timer.add([this, life] { ++ran[life]; }, nanoseconds(1));
  }
  void wait(unsigned life) {
    const TimeoutId id = id_of(life);
    if (timer.cancel_and_wait(id) == CancelResult::Cancelled) ++cancelled[life];
    if (id) MODEL_ASSERT(destroyed[life] == 1);
  }
  TimeoutId id_of(unsigned life) const { return TimeoutId::from_value(ids[life].load(std::memory_order_acquire)); }
  void cancel(unsigned life) {
    if (timer.cancel(id_of(life)) == CancelResult::Cancelled) ++cancelled[life];
  }

  void after() override {
    timer.advance(nanoseconds(2));
    for (unsigned life = 0; life < kLives; ++life) {
      MODEL_ASSERT(ran[life] + cancelled[life] == 1);
      MODEL_ASSERT(destroyed[life] == 1);
      MODEL_ASSERT(timer.cancel(id_of(life)) == CancelResult::Gone);
    }
    MODEL_ASSERT(timer.pending_timeouts() == 0);
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) { return model::check({"id", 3, 10'000, &model::make<model::Id>}, argc, argv); }
