// Nodes through several lives (Node::word), in a whole timer. One thread schedules and cancels, another cancels
// timeouts of the first, and a third turns the wheel. Each timeout ends once, by the thread that then owns its task. No
// entry of the inbox affects another life. No thread uses a node of which it has no reference.
//
// With ids, the second thread uses them at any later time. An id never cancels, finds or waits for a later timeout in
// the same node. Between two lives the node may come to its last generation and be retired, or its memory may go back
// to the system.

#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/timeout.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using hwt::CancelResult;
using hwt::Timeout;
using hwt::TimeoutId;
using hwt::internal::Node;

constexpr unsigned kLives = 3;

struct Word final : Run {
  const bool by_id = random(2) == 0;
  hwt::ManualTimer timer{nanoseconds(1)};
  std::array<Ghost<int>, kLives> ran;
  std::array<Ghost<int>, kLives> cancelled;
  std::array<Node*, kLives + 1> aged{};
  unsigned aged_nodes = 0;
  std::array<int, kLives> destroyed{};  // watched: read by a thread that has waited for the task
  // Handed on by the user's own release and acquire.
  std::array<std::atomic<std::uint64_t>, kLives> ids{};
  Timeout handed_over;
  std::atomic<bool> handle{false};

  /// A task that is destroyed as soon as it can never run again.
  class Task {
   public:
    Task(Word& model, unsigned life) : model_(&model), life_(life) {}
    Task(Task&& other) noexcept : model_(std::exchange(other.model_, nullptr)), life_(other.life_) {}
    ~Task() {
      if (model_ != nullptr) ++model_->destroyed[life_];
    }
    void operator()(Timeout&) { ++model_->ran[life_]; }

   private:
    Word* model_;
    unsigned life_;
  };

  void thread(unsigned index) override {
    if (index == 2) {
      for (int turns = 0; turns < 3; ++turns) timer.advance(nanoseconds(random(2)));
    } else if (by_id) {
      index == 0 ? schedule_by_id() : use_ids();
    } else {
      index == 0 ? schedule() : cancel_of_other();
    }
  }

  void schedule() {
    for (unsigned life = 0; life < kLives; ++life) {
      Timeout timeout = timer.new_timeout(Task(*this, life), nanoseconds(1));
      if (life == 1) {
        handed_over = std::move(timeout);
        handle.store(true, std::memory_order_release);
      } else {
        cancel(timeout, life);
      }
    }
  }
  void cancel_of_other() {
    MODEL_ASSERT(timer.pending_timeouts() >= 0);  // looks at the first thread's producer, as soon as there is one
    while (!handle.load(std::memory_order_acquire)) yield();
    Timeout timeout = std::move(handed_over);
    cancel(timeout, 1);
  }
  void cancel(Timeout& timeout, unsigned life) {
    if (timeout.cancel()) ++cancelled[life];
  }

  void schedule_by_id() {
    change_free_node();
    for (unsigned life = 0; life < kLives; ++life) {
      const TimeoutId id = add(life);
      const std::uint64_t generation = id.value() >> Node::kGenerationShift;
      MODEL_ASSERT(generation >= Node::kFirstGeneration && generation <= Node::kLastGeneration);
      for (unsigned former = 0; former < life; ++former) MODEL_ASSERT(id != id_of(former));
      ids[life].store(id.value(), std::memory_order_release);
      if (random(2) == 0) cancel(life);
      if (random(4) == 0) change_free_node();
    }
  }
  void use_ids() {
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
  }

  /// Schedules and cancels a timeout. If its node is free then, perhaps changes it. This thread's next life uses it.
  void change_free_node() {
    Timeout timeout = timer.new_timeout([] {}, nanoseconds(1));
    Node& node = *Node::of(timeout);
    const std::uint32_t life = node.generation();
    timeout.cancel();
    timeout = {};
    if (node.word.load(std::memory_order_relaxed) != Node::free_word(life + 2)) return;  // the worker has to drop it
    switch (random(3)) {
      case 0:  // as after 2^31 lives
        aged[aged_nodes++] = &node;
        node.word.store(Node::free_word(Node::kLastGeneration), std::memory_order_relaxed);
        break;
      case 1:  // as the system does, and then NodePool::carve(), for a run of free nodes
        if (life >= Node::kLastGeneration - 4) break;
        node.word.store(0, std::memory_order_relaxed);
        node.word.store(Node::free_word(life + 4), std::memory_order_relaxed);
        break;
      default:
        break;
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
      if (by_id) MODEL_ASSERT(timer.cancel(id_of(life)) == CancelResult::Gone);
    }
    MODEL_ASSERT(timer.pending_timeouts() == 0);
    // Otherwise each run would use up the number of its slab.
    for (unsigned i = 0; i < aged_nodes; ++i) {
      aged[i]->word.store(Node::free_word(Node::kFirstGeneration), std::memory_order_relaxed);
    }
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) { return model::check<model::Word>({.threads = 3, .schedules = 20'000}, argc, argv); }
