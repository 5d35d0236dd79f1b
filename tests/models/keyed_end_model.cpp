// A KeyedTimer that is destroyed while its values expire (RunningExpiries, KeyedExpiry). After its destructor, no
// on_expire runs, and none will. The state that its timeouts share is deleted once, with the last of them.

#include <chrono>
#include <memory>

#include "hashed_wheel_timer/keyed_timer.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using std::chrono::nanoseconds;

struct KeyedEnd final : Run {
  int used = 0;  // by on_expire
  Ghost<bool> set = false;
  hwt::ManualTimer timer{nanoseconds(1)};
  std::unique_ptr<hwt::KeyedTimer<int, int>> keyed =
      std::make_unique<hwt::KeyedTimer<int, int>>(timer, [this](const int&, int&) { ++used; });

  void thread(unsigned index) override {
    if (index == 0) {
      (void)keyed->set(1, 0, nanoseconds(1));
      set = true;
      linger();
      keyed.reset();
      used = 0;
    } else {
      while (!set) yield();  // otherwise it would be through before there is anything to expire
      for (int turns = 0; turns < 3; ++turns) timer.advance(nanoseconds(1));
    }
  }

  void after() override {
    timer.advance(nanoseconds(1));
    MODEL_ASSERT(used == 0);
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  return model::check({"keyed_end", 2, 10'000, &model::make<model::KeyedEnd>}, argc, argv);
}
