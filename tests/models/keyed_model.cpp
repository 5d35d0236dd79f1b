// The values of a KeyedTimer. Two threads set and move a key, the second one also removes it, and a third turns the
// wheel. Each value ends once: it expires, is replaced, or is removed. The thread that ends a value sees all earlier
// changes of it. Or the second thread only asks for the size, which never omits a present value.
//
// Or the first thread sets a value, and destroys the KeyedTimer while the value expires (RunningExpiries, KeyedExpiry).
// After the destructor, no on_expire runs, and none will. The state that the timeouts share is deleted once, with the
// last of them.

#include <optional>

#include "hashed_wheel_timer/keyed_timer.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/models/checker.h"

namespace model {
namespace {

constexpr int kPatience = 100;

struct Keyed final : Run {
  struct OneShard {
    std::size_t operator()(int) const { return 0; }
  };
  /// KeyedTimer calls it with the lock held, so values also expire while a thread has the lock.
  struct SlowEqual {
    bool operator()(int one, int other) const {
      linger();
      return one == other;
    }
  };

  enum class Way { SetsToo, Asks, Destroys };  // the second thread; the first one destroys

  const Way way = static_cast<Way>(random(3));
  int used = 0;  // by on_expire
  Ghost<int> expired = 0;
  Ghost<int> erased = 0;
  Ghost<bool> begun = false;
  Ghost<int> set = 0;
  hwt::ManualTimer timer{nanoseconds(1)};
  using Values = hwt::KeyedTimer<int, std::unique_ptr<int>, OneShard, SlowEqual>;
  std::unique_ptr<Values> keyed = std::make_unique<Values>(timer, [this](const int&, std::unique_ptr<int>& value) {
    if (way == Way::Destroys) {
      linger();
      ++used;
    }
    ++*value;
    ++expired;
  });

  Keyed() {
    if (way != Way::Destroys) (void)keyed->set(0, nullptr, nanoseconds(1'000'000));
  }

  void thread(unsigned index) override {
    if (way == Way::Destroys && index == 0) return set_and_destroy();
    if (way == Way::Destroys && index == 1) return;
    if (index == 1 && way == Way::Asks) {
      for (int looks = 0; expired == 0 && looks < kPatience; ++looks) yield();
      for (int turns = 0; turns < 3; ++turns) MODEL_ASSERT(keyed->size() >= 1);
      return;
    }
    if (index == 2) {
      while (!begun) yield();  // otherwise it would be through before there is anything to expire
      for (int turns = 0; turns < 3; ++turns) timer.advance(nanoseconds(1));
      return;
    }
    begun = true;
    (void)keyed->set(1, std::make_unique<int>(0), nanoseconds(1));
    ++set;
    (void)keyed->move(1, nanoseconds(1));
    if (index == 1) {
      if (std::optional<std::unique_ptr<int>> value = keyed->remove(1)) {
        ++**value;
        ++erased;
      }
    }
  }

  void set_and_destroy() {
    (void)keyed->set(1, std::make_unique<int>(0), nanoseconds(1));
    begun = true;
    linger();
    keyed.reset();
    used = 0;
  }

  void after() override {
    timer.advance(nanoseconds(3));
    MODEL_ASSERT(used == 0);
    if (way == Way::Destroys) return;
    MODEL_ASSERT(expired + erased <= set);
    MODEL_ASSERT(expired + erased >= 1);
    MODEL_ASSERT(keyed->size() == 1);
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) { return model::check<model::Keyed>({.threads = 3, .schedules = 20'000}, argc, argv); }
