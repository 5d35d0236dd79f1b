// Fibres that change their thread between two calls: no call remembers the thread of the one before.

#if defined(__GLIBC__)  // musl has no ucontext
#include <ucontext.h>

#include "hashed_wheel_timer/keyed_timer.h"
#include "hashed_wheel_timer/timeout_scope.h"
#include "tests/support/any_timer.h"

namespace hwt::test {
namespace {

/// A function with a stack of its own, which one thread begins and others go on with.
class Fibre {
 public:
  explicit Fibre(std::function<void(Fibre&)> body) : body_(std::move(body)) {
    getcontext(&own_);
    own_.uc_stack.ss_sp = stack_.data();
    own_.uc_stack.ss_size = stack_.size();
    own_.uc_link = &thread_;
    const std::uint64_t self = reinterpret_cast<std::uintptr_t>(this);  // 64 bits, to be shifted on any machine
    makecontext(&own_, reinterpret_cast<void (*)()>(&Fibre::begin), 2, static_cast<unsigned>(self >> 32U),
                static_cast<unsigned>(self));
  }
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;

  /// Runs the fibre on this thread until it yields or ends.
  void resume() { swapcontext(&thread_, &own_); }
  /// Called by the fibre.
  [[gnu::noinline]] void yield() { swapcontext(&own_, &thread_); }
  bool has_ended() const { return has_ended_; }

 private:
  static void begin(unsigned high, unsigned low) {
    auto& self = *reinterpret_cast<Fibre*>(static_cast<std::uintptr_t>(std::uint64_t{high} << 32U | low));
    self.body_(self);
    self.has_ended_ = true;
  }

  const std::function<void(Fibre&)> body_;
  std::vector<char> stack_ = std::vector<char>(256 * 1024);
  ucontext_t own_{};
  ucontext_t thread_{};
  bool has_ended_ = false;
};

/// Runs the fibre to its end, each part on a thread of its own. The earlier threads live on until `stay` is false, or
/// end at once.
void run_on_many_threads(Fibre& fibre, bool stay) {
  Latch ended;
  std::vector<std::jthread> threads;
  while (!fibre.has_ended()) {
    Latch yielded;
    threads.emplace_back([&] {
      fibre.resume();
      yielded.count_down();
      if (!stay) return;
      EXPECT_TRUE(ended.wait());
    });
    ASSERT_TRUE(yielded.wait());
  }
  ended.count_down();
}

template <class T>
class FibreTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "sanitizers must be told of each change of a stack";
  }
  static void run(const std::function<void(Fibre&)>& body) {
    for (const bool stay : {true, false})
      for (int round = 0; round < 20; ++round) {
        Fibre fibre(body);
        run_on_many_threads(fibre, stay);
      }
  }
};
TYPED_TEST_SUITE(FibreTest, ThreadedTimers, TimerNames);

TYPED_TEST(FibreTest, CancelsAndMovesOnOtherThreadsThanItScheduledOn) {
  const auto timer = make_timer<TypeParam>();
  std::atomic<int> ran = 0;
  this->run([&](Fibre& fibre) {
    Timeout first = timer->new_timeout(must_not_run, kFar);
    const TimeoutId second = timer->add(must_not_run, kFar);
    const TimeoutId third = timer->add([&] { ++ran; }, kFar);
    fibre.yield();
    EXPECT_TRUE(first.reschedule(2 * kFar));
    EXPECT_EQ(timer->cancel(second), CancelResult::Cancelled);
    const TimeoutId fourth = timer->add(must_not_run, kFar);
    fibre.yield();
    EXPECT_TRUE(timer->reschedule(third, 0ns));
    EXPECT_TRUE(first.cancel());
    fibre.yield();
    EXPECT_EQ(timer->cancel_and_wait(fourth), CancelResult::Cancelled);
    EXPECT_EQ(timer->cancel(second), CancelResult::Gone);
  });
  EXPECT_TRUE(eventually([&] { return ran == 40; })) << ran;
  EXPECT_TRUE(is_balanced(timer->stats()));
}

TYPED_TEST(FibreTest, ScopesAndKeys) {
  const auto timer = make_timer<TypeParam>();
  std::atomic<int> expired = 0;
  KeyedTimer<int, int> keyed(*timer, [&](const int&, int&) { ++expired; });
  std::atomic<int> number = 0;
  this->run([&](Fibre& fibre) {
    const int key = ++number;
    auto scope = std::make_unique<TimeoutScope>(*timer);
    const TimeoutId id = scope->add(must_not_run, kFar);
    scope->add(must_not_run, kFar);
    (void)keyed.set(key, 1, kFar);
    (void)keyed.set(-key, 1, kFar);
    fibre.yield();
    EXPECT_EQ(scope->cancel(id), CancelResult::Cancelled);
    EXPECT_EQ(keyed.move(key, 0ns), KeyedResult::Moved);
    fibre.yield();
    scope.reset();
    EXPECT_TRUE(keyed.remove(-key));
  });
  EXPECT_TRUE(eventually([&] { return expired == 40; })) << expired;
}

TYPED_TEST(FibreTest, DestroysATimerThatAnotherThreadMade) {
  this->run([&](Fibre& fibre) {
    auto timer = make_timer<TypeParam>();
    Timeout timeout = timer->new_timeout(must_not_run, kFar);
    fibre.yield();
    timer->new_timeout(must_not_run, kFar);
    fibre.yield();
    EXPECT_EQ(timer->stop().size(), 2U);
    fibre.yield();
    timer.reset();
    EXPECT_TRUE(timeout.is_cancelled());
  });
}

}  // namespace
}  // namespace hwt::test
#endif
