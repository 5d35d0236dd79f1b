// Random histories of calls on a RepeatedTimer, from outside, from inside its hooks and from another thread, against a
// model that is too simple to be wrong. At most one timeout is armed at any moment.

#include <array>
#include <random>
#include <string_view>

#include "tests/support/repeated_timer_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using std::chrono::milliseconds;

enum class Call { Start, Stop, Restart, Reset, ResetTo, RunOnceNow, Destroy };

/// The state of a RepeatedTimer: when it is due, if at all.
struct Model {
  bool stopped = true;
  bool destroyed = false;
  bool triggering = false;
  milliseconds timeout{10};
  std::optional<milliseconds> due;
  int destroy_runs = 0;

  bool running() const { return !stopped && !destroyed; }
};

class History {
 public:
  explicit History(unsigned seed) : random_(seed) {}

  void run() {
    for (int step = 0; step < 300 && !::testing::Test::HasFailure(); ++step) {
      if (uniform(0, 2) == 0) {
        random_call();
      } else {
        clock_.advance(1ms);
        EXPECT_FALSE(model_.due && *model_.due <= now()) << "should have triggered";
      }
      compare("outside");
    }
    timer_.destroy();
    EXPECT_EQ(destroyed_, 1);
    EXPECT_EQ(clock_.pending_timeouts(), 0);
    EXPECT_TRUE(errors_.errors().empty());
    EXPECT_FALSE(::testing::Test::HasFailure()) << "calls: " << log_;
  }
  int triggers() const { return triggers_; }

 private:
  int uniform(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  milliseconds now() const { return std::chrono::duration_cast<milliseconds>(clock_.now().time_since_epoch()); }

  // The timer and the model use it, with the number of the call, so that a call too many or too few shows.
  static milliseconds adjusted(milliseconds timeout, int call) { return timeout + milliseconds(call % 5 - 2); }

  void arm_model() {
    if (model_.running()) model_.due = now() + std::max(adjusted(model_.timeout, ++model_asked_), milliseconds(1));
  }

  void destroy_model() {
    model_.due.reset();
    ++model_.destroy_runs;
  }

  bool call_on_model(Call call, milliseconds timeout) {
    const bool idle = !model_.triggering;
    if (model_.destroyed) return false;
    switch (call) {
      case Call::Start:
        if (std::exchange(model_.stopped, false) && idle) arm_model();
        break;
      case Call::Stop:
        model_.stopped = true;
        model_.due.reset();
        break;
      case Call::Restart:
        model_.stopped = false;
        if (idle) arm_model();
        break;
      case Call::ResetTo:
        model_.timeout = timeout;
        [[fallthrough]];
      case Call::Reset:
        if (idle) arm_model();
        break;
      case Call::RunOnceNow:
        if (!idle || !model_.running()) return false;
        model_.due = now();  // checked by the trigger
        return true;
      case Call::Destroy:
        model_.destroyed = true;
        model_.due.reset();
        if (idle) destroy_model();
        break;
    }
    return false;
  }

  bool call_on_timer(Call call, milliseconds timeout) {
    switch (call) {
      case Call::Start:
        timer_.start();
        break;
      case Call::Stop:
        timer_.stop();
        break;
      case Call::Restart:
        timer_.restart();
        break;
      case Call::Reset:
        timer_.reset();
        break;
      case Call::ResetTo:
        timer_.reset(timeout);
        break;
      case Call::RunOnceNow:
        return timer_.run_once_now();
      case Call::Destroy:
        timer_.destroy();
        break;
    }
    return false;
  }

  void random_call() {
    // A destroyed timer does nothing any more, so destroy() comes only now and then.
    const int number = uniform(0, 60);
    const Call call = number == 60 ? Call::Destroy : static_cast<Call>(number % 6);
    const milliseconds timeout(uniform(1, 20));
    constexpr std::string_view kLetters = "sprRtod";
    log_ += kLetters[static_cast<std::size_t>(call)];
    const bool expected = call_on_model(call, timeout);
    bool result = false;
    if (uniform(0, 9) == 0) {
      on_another_thread([&] { result = call_on_timer(call, timeout); });
    } else {
      result = call_on_timer(call, timeout);
    }
    EXPECT_EQ(result, expected);
  }

  void trigger() {
    ++triggers_;
    log_ += '(';
    EXPECT_FALSE(model_.triggering) << "overlaps itself";
    EXPECT_TRUE(model_.due && *model_.due == now()) << "at " << now().count() << " ms";
    model_.due.reset();
    model_.triggering = true;
    for (int calls = uniform(0, 3); calls > 0; --calls) {
      random_call();
      compare("inside");
    }
    model_.triggering = false;
    log_ += ')';
    // Ends the trigger in the model. No time passes until the timer has ended the trigger too.
    if (model_.destroyed) destroy_model();
    arm_model();
  }

  void compare(const char* where) {
    EXPECT_EQ(timer_.running(), model_.running()) << where;
    EXPECT_EQ(timer_.timeout(), model_.timeout) << where;
    EXPECT_EQ(clock_.pending_timeouts(), model_.due ? 1 : 0) << where;
    EXPECT_EQ(asked_, model_asked_) << where;
    EXPECT_EQ(destroyed_, model_.destroy_runs) << where;
  }

  std::minstd_rand random_;
  std::string log_;
  ErrorLog errors_;
  ManualTimer clock_{1ms, {}, errors_.handler()};
  int triggers_ = 0;
  int asked_ = 0;
  int model_asked_ = 0;
  int destroyed_ = 0;
  Model model_;
  RepeatedTimer timer_{"model",
                       model_.timeout,
                       clock_,
                       {.on_trigger = [this] { trigger(); },
                        .adjust_timeout =
                            [this](auto timeout) {
                              EXPECT_LE(clock_.pending_timeouts(), 1);
                              return adjusted(std::chrono::duration_cast<milliseconds>(timeout), ++asked_);
                            },
                        .on_destroy = [this] { ++destroyed_; }}};
};

TEST(RepeatedTimerModel, RandomHistories) {
  int triggers = 0;
  for (unsigned seed = 1; seed <= 700 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    History history(seed);
    history.run();
    triggers += history.triggers();
  }
  EXPECT_GT(triggers, 1'000) << "the histories do not go where it matters";
}

}  // namespace
}  // namespace hwt
