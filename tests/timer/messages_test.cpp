// The contents of messages: the origin of an exception, the function that was called, and readable durations.

#include "hashed_wheel_timer/coroutine.h"
#include "hashed_wheel_timer/internal/report/log.h"
#include "hashed_wheel_timer/internal/report/refuse.h"
#include "hashed_wheel_timer/repeated_timer.h"
#include "hashed_wheel_timer/schedule.h"
#include "hashed_wheel_timer/stop_after.h"
#include "hashed_wheel_timer/timeout_scope.h"
#include "tests/coroutine/coroutine_support.h"
#include "tests/support/any_timer.h"
#include "tests/support/held_timer.h"

namespace hwt::test {
namespace {

/// Runs `schedule`, and then a millisecond of its ManualTimer. Returns the text that this writes to stderr.
std::string line_about(Options options, const std::function<void(ManualTimer&)>& schedule) {
  testing::internal::CaptureStderr();
  options.tick_duration = 1ms;
  ManualTimer timer(options);
  schedule(timer);
  timer.advance(1ms);
  return testing::internal::GetCapturedStderr();
}

[[noreturn]] void throw_wrong() { throw std::runtime_error("wrong"); }

TEST(MessageOfAnException, NamesItsOriginInOneLineUnlessThereIsAHandler) {
  const auto expect = [](const std::string& origin, const Options& options, auto task) {
    EXPECT_EQ(line_about(options, [&](ManualTimer& timer) { timer.new_timeout(task, 0s); }),
              "hashed_wheel_timer: an exception was thrown by " + origin + '\n');
  };
  expect("a task: wrong", {}, throw_wrong);
  expect("a task: a?b?c", {}, [] {
    throw std::runtime_error(
        "a\nb\x7f"
        "c");
  });
  expect("the executor: wrong", {.executor = [](std::function<void()>) { throw_wrong(); }}, [] {});
  expect("on_slow_task: wrong", {.slow_task = 1ns, .on_slow_task = [](const Timeout&, auto) { throw_wrong(); }},
         [] { std::this_thread::sleep_for(1us); });
  EXPECT_EQ(line_about({}, [](ManualTimer& timer) { timer.new_timeout(on_cancelled(throw_wrong), 0s).cancel(); }),
            "hashed_wheel_timer: an exception was thrown by cancelled() of a task: wrong\n");
  EXPECT_EQ(line_about({.on_task_error = [](const std::exception_ptr&, const Timeout&) {}},
                       [](ManualTimer& timer) { timer.new_timeout(throw_wrong, 0s); }),
            "");
}

TEST(MessageOfAnException, NamesAScheduleAndARepeatedTimer) {
  const std::string line = "hashed_wheel_timer: an exception was thrown by a ";
  const std::string refusal = ": max_pending_timeouts: 1 timeouts are pending already\n";
  Timeout other;
  std::optional<RepeatedTimer> repeated;
  const auto repeat = [&](ManualTimer& timer, std::function<void()> on_trigger) {
    repeated.emplace("election", 1ns, timer, RepeatedTimer::Hooks{.on_trigger = std::move(on_trigger)});
    repeated->start();
  };
  const auto takes_the_place = [&](ManualTimer& timer) { return [&] { other = timer.new_timeout([] {}, kFar); }; };
  const Options limited{.max_pending_timeouts = 1};
  EXPECT_EQ(
      line_about(limited,
                 [&](ManualTimer& timer) { schedule(timer, Schedule::fixed_rate(0s, 1s), takes_the_place(timer)); }),
      line + "schedule, which has ended: schedule" + refusal);
  EXPECT_EQ(line_about(limited, [&](ManualTimer& timer) { repeat(timer, takes_the_place(timer)); }),
            line + "RepeatedTimer: RepeatedTimer election" + refusal);
  EXPECT_EQ(line_about({}, [&](ManualTimer& timer) { repeat(timer, throw_wrong); }), line + "RepeatedTimer: wrong\n");
}

/// The exception of on_task_error replaces that of the task.
TEST(MessageOfAnException, NamesOnTaskErrorAndCountsNoLineAsLeftOut) {
  const std::string line = "hashed_wheel_timer: an exception was thrown by on_task_error: wrong\n";
  EXPECT_EQ(line_about({.on_task_error = [](const std::exception_ptr&, const Timeout&) { throw_wrong(); }},
                       [](ManualTimer& timer) {
                         const auto fail = [] { throw std::logic_error("first"); };
                         timer.new_timeout(fail, 0s);
                         timer.advance(1ms);
                         std::this_thread::sleep_for(1100ms);  // there is at most one line a second
                         timer.new_timeout(fail, 0s);
                       }),
            line + line);
}

template <class T>
class MessageAfterStop : public ::testing::Test {};
TYPED_TEST_SUITE(MessageAfterStop, AllTimers);

TYPED_TEST(MessageAfterStop, NamesTheCallAndTheReason) {
  for (const bool used : {false, true}) {
    const auto timer = make_timer<TypeParam>();
    if (used) timer->new_timeout([] {}, kFar);
    timer->stop();
    EXPECT_EQ(message_of<IllegalState>([&] { timer->new_timeout([] {}, 1s); }),
              "new_timeout: the timer has been stopped");
    if constexpr (!kDriven<TypeParam>) {
      EXPECT_EQ(message_of<IllegalState>([&] { timer->start(); }), "start: the timer has been stopped");
    }
  }
}

/// The timer stops after the call has found that it must also store the origin.
TEST(MessageAfterStop, IsTheSameForATimerThatTracesOriginsAndStopsMeanwhile) {
  HeldTimer timer({.tick_duration = 1ms, .trace_origins = true});
  timer.start();
  timer.hold_next(HeldTimer::At::Exit);
  std::string message;
  std::jthread scheduling([&] { message = message_of<IllegalState>([&] { timer.new_timeout([] {}, 1s); }); });
  ASSERT_TRUE(timer.wait_until_held());
  timer.stop();
  timer.go_on();
  scheduling.join();
  EXPECT_EQ(message, "new_timeout: the timer has been stopped");
}

TEST(MessageOfADuration, IsAWholeNumberOfTheLargestUnitUpToSeconds) {
  using internal::text_of;
  EXPECT_EQ(text_of(0ns), "0 ns");
  EXPECT_EQ(text_of(1ns), "1 ns");
  EXPECT_EQ(text_of(-999ns), "-999 ns");
  EXPECT_EQ(text_of(1us), "1 us");
  EXPECT_EQ(text_of(1500us), "1500 us");
  EXPECT_EQ(text_of(-20ms), "-20 ms");
  EXPECT_EQ(text_of(10s), "10 s");
  EXPECT_EQ(text_of(24h), "86400 s");
  EXPECT_EQ(text_of(std::chrono::nanoseconds::max()), "9223372036854775807 ns");
  EXPECT_EQ(message_of<std::invalid_argument>([] { ManualTimer timer(-10s); }),
            "ManualTimer: tick_duration: -10 s (expected: 1 ns or more)");
  EXPECT_EQ(message_of<std::invalid_argument>([] { LoopTimer timer(0ms); }).rfind("LoopTimer: ", 0), 0u);
  EXPECT_EQ(message_of<std::invalid_argument>([] { HashedWheelTimer timer(0ms); }).rfind("HashedWheelTimer: ", 0), 0u);
}

Detached note_refusal(Sleep sleep, std::string& message) {
  try {
    co_await sleep;
  } catch (const RejectedExecution& refusal) {
    message = refusal.what();
  }
}

TEST(MessageOfARefusal, NamesTheFunctionThatSchedules) {
  const auto nan = kNanDelay;
  ManualTimer timer{{.tick_duration = 1ms, .max_pending_timeouts = 1}};
  timer.new_timeout([] {}, kFar);
  TimeoutScope scope(timer);
  const auto at = timer.now() + kFar;
  const auto expect = [](const std::string& name, const std::function<void()>& call) {
    EXPECT_EQ(message_of<RejectedExecution>(call), name + ": max_pending_timeouts: 1 timeouts are pending already");
  };
  expect("new_timeout", [&] { timer.new_timeout([] {}, 1s); });
  expect("new_timeout", [&] { timer.new_timeout([] {}, 1s, Leeway(1s)); });
  expect("new_timeout", [&] { timer.new_timeout([] {}, at); });
  expect("add", [&] { timer.add([] {}, 1s); });
  expect("add", [&] { timer.add([] {}, at); });
  expect("add", [&] { scope.add([] {}, 1s); });
  expect("add", [&] { scope.add([] {}, at); });
  expect("schedule", [&] { schedule(timer, Schedule::once(1s), [] {}); });
  expect("StopAfter", [&] { const StopAfter limit(timer, 1s); });
  expect("StopAfter", [&] { const StopAfter limit(timer, at); });
  std::string message;
  note_refusal(sleep_for(timer, 1s), message);
  EXPECT_EQ(message, "sleep_for: max_pending_timeouts: 1 timeouts are pending already");
  note_refusal(sleep_until(timer, at), message);
  EXPECT_EQ(message, "sleep_until: max_pending_timeouts: 1 timeouts are pending already");

  const auto text = [](const std::function<void()>& call) { return message_of<std::invalid_argument>(call); };
  ManualTimer other;
  StopAfter moved(other, kFar);
  EXPECT_EQ(text([&] { moved.reschedule(nan); }), "StopAfter: delay: NaN (expected: a number)");
  EXPECT_EQ(text([&] { const StopAfter limit(timer, nan); }), "StopAfter: delay: NaN (expected: a number)");
  EXPECT_EQ(text([&] { timer.new_timeout(std::function<void()>(), at); }),
            "new_timeout: task: null (expected: a callable or a TimerTask)");
  EXPECT_EQ(text([&] { timer.add([] {}, at, Leeway(nan)); }), "add: leeway: NaN (expected: a number)");
  EXPECT_EQ(text([&] { Timeout().reschedule(at, Leeway(nan)); }), "reschedule: leeway: NaN (expected: a number)");
}

TEST(LinePerSecond, TellsHowManyLinesItHasLeftOut) {
  internal::LinePerSecond lines;
  const auto first = lines.take_turn();
  ASSERT_TRUE(first);
  EXPECT_EQ(std::string(first->data()), "");
  for (int line = 0; line < 2; ++line) {  // the second one counts anew
    int left_out = 0;
    ASSERT_TRUE(eventually([&] {
      const auto end = lines.take_turn();
      if (!end) return ++left_out == 0;
      if (left_out == 0) return false;  // this thread was held up for a second
      EXPECT_EQ(end->data(), " (and " + std::to_string(left_out) + " more since the last line)");
      return true;
    }));
    EXPECT_GT(left_out, 0);
  }
}

}  // namespace
}  // namespace hwt::test
