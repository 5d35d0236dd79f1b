// on_expire that runs inside another on_expire, of the same KeyedTimer or another. An executor that keeps its jobs lets
// a call run the next one. A KeyedTimer that goes away keeps its function until the outermost call of it has returned.

#include <functional>
#include <memory>
#include <vector>

#include "hashed_wheel_timer/keyed_timer.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using Ints = KeyedTimer<int, int>;

class NestedExpiry : public ::testing::Test {
 protected:
  /// A KeyedTimer with one key, whose function calls `body`. Sets `alive` to a part of the function.
  std::unique_ptr<Ints> make(std::weak_ptr<int>& alive, std::function<void()> body) {
    auto part = std::make_shared<int>();
    alive = part;
    auto keyed =
        std::make_unique<Ints>(timer_, [part = std::move(part), body = std::move(body)](int, int&) { body(); });
    (void)keyed->set(1, 1, 1ms);
    return keyed;
  }
  /// Lets all keys expire. Their calls wait for run_next().
  void expire() {
    timer_.advance(1ms);
    waiting_ = jobs_.take();
  }
  void run_next() { waiting_.at(next_++)(); }

  JobQueue jobs_;
  std::vector<std::function<void()>> waiting_;
  std::size_t next_ = 0;
  ManualTimer timer_{Options{.tick_duration = 1ms, .executor = jobs_.executor()}};
};

TEST_F(NestedExpiry, ACallThatDestroysItsKeyedTimerLeavesTheFunctionToTheOuterCall) {
  std::weak_ptr<int> function;
  std::unique_ptr<Ints> keyed;
  int calls = 0;
  keyed = make(function, [&] {
    if (++calls == 1) {
      run_next();
    } else {
      keyed.reset();
    }
    EXPECT_FALSE(function.expired()) << "destroyed in call " << calls;
  });
  (void)keyed->set(2, 2, 1ms);
  expire();
  run_next();
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(function.expired()) << "the outer call has returned";
}

TEST_F(NestedExpiry, ACallInsideACallOfAnotherKeyedTimerReleasesItsOwnFunction) {
  std::weak_ptr<int> outer_function;
  std::weak_ptr<int> inner_function;
  std::unique_ptr<Ints> inner;
  const auto outer = make(outer_function, [&] {
    run_next();
    EXPECT_TRUE(inner_function.expired());
  });
  inner = make(inner_function, [&] {
    inner.reset();
    EXPECT_FALSE(inner_function.expired());
  });
  (void)inner->set(2, 2, 1ms);  // whose job still refers to the rest of the KeyedTimer
  expire();
  run_next();
  EXPECT_EQ(inner, nullptr);
  EXPECT_FALSE(outer_function.expired());
}

TEST_F(NestedExpiry, ACallMayDestroyAnotherKeyedTimerWhoseFunctionGoesAtOnce) {
  std::weak_ptr<int> function;
  std::weak_ptr<int> other_function;
  std::unique_ptr<Ints> other = make(other_function, [] { ADD_FAILURE() << "called although its timer had gone"; });
  const auto keyed = make(function, [&] {
    other.reset();
    EXPECT_TRUE(other_function.expired());
  });
  expire();
  next_ = 1;
  run_next();
  EXPECT_EQ(other, nullptr);
}

}  // namespace
}  // namespace hwt
