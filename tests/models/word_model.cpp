// Nodes through several lives (Node::word), in a whole timer. One thread schedules and cancels, another cancels a
// timeout of the first, and a third turns the wheel. Each timeout ends once, by the thread that then owns its task. No
// entry of the inbox affects another life. No thread uses a node of which it has no reference.

#include <array>
#include <atomic>
#include <chrono>
#include <utility>

#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/timeout.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using std::chrono::nanoseconds;
constexpr int kLives = 3;

struct Word final : Run {
  hwt::ManualTimer timer{nanoseconds(1)};
  std::array<Ghost<int>, kLives> ran;
  std::array<Ghost<int>, kLives> cancelled;
  std::array<Ghost<int>, kLives> destroyed;
  hwt::Timeout handed_over;
  std::atomic<bool> handle{false};  // the user's own

  /// A task that is destroyed as soon as it can never run again.
  class Task {
   public:
    Task(Word& word, int life) : word_(&word), life_(life) {}
    Task(Task&& other) noexcept : word_(std::exchange(other.word_, nullptr)), life_(other.life_) {}
    ~Task() {
      if (word_ != nullptr) ++word_->destroyed[static_cast<unsigned>(life_)];
    }
    void operator()(hwt::Timeout&) { ++word_->ran[static_cast<unsigned>(life_)]; }

   private:
    Word* word_;
    int life_;
  };

  void thread(unsigned index) override {
    if (index == 0) {
      for (int life = 0; life < kLives; ++life) {
        hwt::Timeout timeout = timer.new_timeout(Task(*this, life), nanoseconds(1));
        if (life == 1) {
          handed_over = std::move(timeout);
          handle.store(true, std::memory_order_release);
        } else {
          cancel(timeout, life);
        }
      }
    } else if (index == 1) {
      MODEL_ASSERT(timer.pending_timeouts() >= 0);  // looks at the first thread's producer, as soon as there is one
      while (!handle.load(std::memory_order_acquire)) yield();
      hwt::Timeout timeout = std::move(handed_over);
      cancel(timeout, 1);
    } else {
      for (int turns = 0; turns < 3; ++turns) timer.advance(nanoseconds(random(2)));
    }
  }

  void cancel(hwt::Timeout& timeout, int life) {
    if (timeout.cancel()) ++cancelled[static_cast<unsigned>(life)];
  }

  void after() override {
    timer.advance(nanoseconds(2));
    for (unsigned life = 0; life < kLives; ++life) {
      MODEL_ASSERT(ran[life] + cancelled[life] == 1);
      MODEL_ASSERT(destroyed[life] == 1);
    }
    MODEL_ASSERT(timer.pending_timeouts() == 0);
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) { return model::check({"word", 3, 10'000, &model::make<model::Word>}, argc, argv); }
