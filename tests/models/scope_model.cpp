// A TimeoutScope: cancel_all(), cancel() and add() in threads and in tasks, against expiry and the destructor. Each
// timeout ends once, and a cancel_all() at the end misses none that was added before. After the destructor no task of
// the scope runs, none will, and the thread that called it sees all that the tasks did. The destructor may run inside a
// task whose add() has not returned yet.

#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/timeout_scope.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using hwt::TimeoutId;

constexpr nanoseconds kNever = (nanoseconds::max)();
constexpr std::size_t kOthers =
    5;  // with one more the scope's list is full, so the next add() removes those that ended

struct Scope final : Run {
  enum class Way { OwnerEndsIt, TaskEndsIt, ManyUseIt };

  const Way way = static_cast<Way>(random(3));
  int used = 0;  // watched: the object that the callables use
  Ghost<int> added = 0;
  Ghost<int> ran = 0;
  Ghost<int> cancelled = 0;
  Ghost<bool> ended = false;
  hwt::ManualTimer timer{nanoseconds(1)};
  std::unique_ptr<hwt::TimeoutScope> owner = std::make_unique<hwt::TimeoutScope>(timer);
  hwt::TimeoutScope* const scope = owner.get();  // for tasks: the owner's pointer changes at the end
  TimeoutId other;                               // the last of kOthers

  Scope() {
    for (std::size_t i = 0; i < kOthers; ++i) other = scope->add([] { fail("it is never due"); }, kNever);
  }

  void thread(unsigned index) override {
    if (index == 1) {
      for (int turns = 0; turns < 3; ++turns) timer.advance(nanoseconds(1));
    } else if (way == Way::OwnerEndsIt) {
      if (index == 0) own();
    } else if (way == Way::TaskEndsIt) {
      if (index == 0) {
        scope->add(
            [this] {
              owner.reset();
              check_end();
            },
            nanoseconds(random(2)));
      }
    } else {
      const TimeoutId id = add(nanoseconds(random(2)));
      if (random(2) == 0) cancel(id);
      cancel_all();
      if (index == 0) MODEL_ASSERT(scope->size() <= kOthers + static_cast<std::size_t>(added));
    }
  }

  /// Its tasks use the scope while it ends.
  void own() {
    add(nanoseconds(random(2)));
    if (random(2) == 0) add(nanoseconds(random(2)));
    linger();
    if (random(2) == 0) add(kNever);
    switch (random(3)) {
      case 0:
        cancel_all();
        break;
      case 1:
        add(nanoseconds(1));
        break;
      default:
        break;
    }
    owner.reset();
    check_end();
  }

  /// Its task uses the object, and then perhaps the scope.
  TimeoutId add(nanoseconds delay) {
    const TimeoutId id = scope->add(
        [this] {
          MODEL_ASSERT(!ended);
          ++ran;
          ++used;
          use();
          MODEL_ASSERT(!ended);
        },
        delay);
    ++added;
    return id;
  }
  void use() {
    switch (random(6)) {
      case 0:
        cancel_all();
        break;
      case 1:
        try {
          scope->add(
              [this] {
                MODEL_ASSERT(!ended);
                ++ran;
              },
              nanoseconds(1));
          ++added;
        } catch (const hwt::IllegalState&) {
        }
        break;
      case 2:
        scope->size();
        break;
      case 3:
        cancel(other);
        break;
      default:  // nothing that orders its effects
        break;
    }
  }
  void cancel(TimeoutId id) {
    if (scope->cancel(id) == hwt::CancelResult::Cancelled) ++cancelled;
  }
  void cancel_all() {
    const std::size_t count = scope->cancel_all();
    cancelled = cancelled + static_cast<int>(count);
  }

  void check_end() {
    ended = true;
    used = 0;
  }

  void after() override {
    if (way == Way::ManyUseIt) {
      cancel_all();
      MODEL_ASSERT(scope->size() == 0);
      MODEL_ASSERT(timer.pending_timeouts() == 0);
      MODEL_ASSERT(ran + cancelled == added + static_cast<int>(kOthers));
      owner.reset();
      check_end();
    }
    timer.advance(nanoseconds(2));
    MODEL_ASSERT(owner == nullptr);
    MODEL_ASSERT(timer.pending_timeouts() == 0);
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) { return model::check<model::Scope>({.threads = 3, .schedules = 10'000}, argc, argv); }
