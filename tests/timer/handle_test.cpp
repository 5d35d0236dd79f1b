// Timeout as a value, and its queries.

#include <unordered_set>

#include "hashed_wheel_timer/internal/memory/node.h"
#include "tests/support/counted_abort.h"
#include "tests/support/test_support.h"

namespace hwt::test {
namespace {

static_assert(sizeof(Timeout) == 8);
static_assert(std::is_nothrow_default_constructible_v<Timeout>);
static_assert(std::is_nothrow_copy_constructible_v<Timeout> && std::is_nothrow_copy_assignable_v<Timeout>);
static_assert(std::is_nothrow_move_constructible_v<Timeout> && std::is_nothrow_move_assignable_v<Timeout>);
static_assert(std::is_nothrow_swappable_v<Timeout>);
static_assert(!std::is_convertible_v<Timeout, bool>, "explicit only");

TEST(Handle, NullByDefault) {
  Timeout null;
  EXPECT_FALSE(null);
  EXPECT_FALSE(null.cancel());
  EXPECT_FALSE(null.cancel_and_wait());
  EXPECT_FALSE(null.is_cancelled());
  EXPECT_FALSE(null.is_expired());
  EXPECT_EQ(null.timer(), nullptr);
  EXPECT_EQ(null.deadline(), steady_clock::time_point::max());
  EXPECT_EQ(message_of<IllegalState>([&] { null.task(); }), "task() of a null Timeout");
  EXPECT_EQ(null, Timeout());
  EXPECT_EQ(text_of(null), "Timeout(null)");
  const Timeout copy = null;
  EXPECT_FALSE(copy);
}

TEST(Handle, IsPendingUntilTheTimeoutExpiresOrIsCancelled) {
  EXPECT_FALSE(Timeout().is_pending());
  ManualTimer timer(1ms);
  bool pending_in_task = true;
  Timeout expiring = timer.new_timeout([&](Timeout& self) { pending_in_task = self.is_pending(); }, 1ms);
  Timeout cancelled = timer.new_timeout([] {}, 1ms);
  const Timeout stopped = timer.new_timeout([] {}, kFar);
  EXPECT_TRUE(expiring.is_pending() && cancelled.is_pending() && stopped.is_pending());
  cancelled.cancel();
  EXPECT_FALSE(cancelled.is_pending());
  timer.advance(1ms);  // the others are in the wheel
  EXPECT_FALSE(expiring.is_pending() || pending_in_task);
  EXPECT_TRUE(stopped.is_pending());
  timer.stop();
  EXPECT_FALSE(stopped.is_pending());
}

TEST(Handle, IsNotPendingWhileTheTaskWaitsInAnExecutor) {
  std::function<void()> waiting;
  bool ran = false;
  ManualTimer timer(Options{.executor = [&](std::function<void()> job) { waiting = std::move(job); }});
  const Timeout timeout = timer.new_timeout([&] { ran = true; }, 1ms);
  timer.advance(1ms);
  EXPECT_FALSE(timeout.is_pending() || ran);
  EXPECT_TRUE(timeout.is_expired());
  waiting();
  EXPECT_TRUE(ran);
}

TEST(Handle, CopiesAreTheSameTimeout) {
  HashedWheelTimer timer;
  const Timeout original = timer.new_timeout([] {}, kFar);
  Timeout copy = original;
  EXPECT_EQ(copy, original);
  Timeout assigned;
  assigned = copy;
  EXPECT_EQ(assigned, original);
  EXPECT_TRUE(copy.cancel());
  EXPECT_TRUE(original.is_cancelled());
  EXPECT_FALSE(assigned.cancel());
}

TEST(Handle, MovingLeavesNull) {
  HashedWheelTimer timer;
  Timeout first = timer.new_timeout([] {}, kFar);
  const Timeout same = first;
  Timeout second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(second, same);
  Timeout third = timer.new_timeout([] {}, kFar);
  third = std::move(second);
  EXPECT_FALSE(second);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(third, same);
  EXPECT_EQ(timer.pending_timeouts(), 2) << "dropping a handle cancels nothing";
}

TEST(Handle, SelfAssignmentChangesNothing) {
  HashedWheelTimer timer;
  Timeout timeout = timer.new_timeout([] {}, kFar);
  const Timeout same = timeout;
  Timeout& alias = timeout;
  timeout = alias;
  EXPECT_EQ(timeout, same);
  timeout = std::move(alias);
  EXPECT_EQ(timeout, same);
  EXPECT_TRUE(timeout.cancel());
}

TEST(Handle, Swap) {
  HashedWheelTimer timer;
  Timeout a = timer.new_timeout([] {}, kFar);
  Timeout b;
  const Timeout was_a = a;
  a.swap(b);
  EXPECT_EQ(b, was_a);
  EXPECT_FALSE(a);
  using std::swap;
  swap(a, b);
  EXPECT_EQ(a, was_a);
  a.swap(a);
  EXPECT_EQ(a, was_a);
}

TEST(Handle, HashAndEquality) {
  HashedWheelTimer timer;
  const Timeout a = timer.new_timeout([] {}, kFar);
  const Timeout b = timer.new_timeout([] {}, kFar);
  const Timeout copy_of_a = a;
  EXPECT_NE(a, b);
  EXPECT_NE(a, Timeout());
  EXPECT_EQ(std::hash<Timeout>()(a), std::hash<Timeout>()(copy_of_a));
  const std::unordered_set<Timeout> set{a, b, copy_of_a, Timeout(), Timeout()};
  EXPECT_EQ(set.size(), 3U);
  EXPECT_TRUE(set.contains(copy_of_a));
}

TEST(Handle, TheSameTaskTwiceAreTwoTimeouts) {
  const auto task = std::make_shared<RecordingTask>();
  HashedWheelTimer timer;
  Timeout first = timer.new_timeout(task, kFar);
  const Timeout second = timer.new_timeout(task, kFar);
  EXPECT_NE(first, second);
  EXPECT_EQ(&first.task(), &second.task());
  EXPECT_TRUE(first.cancel());
  EXPECT_FALSE(second.is_cancelled());
}

TEST(Handle, DeadlineIsTheDelayFromTheCall) {
  HashedWheelTimer timer;
  for (const std::chrono::nanoseconds delay :
       {std::chrono::nanoseconds(0), 1234567ns, std::chrono::nanoseconds(kFar)}) {
    const auto before = timer.now();
    const Timeout timeout = timer.new_timeout([] {}, delay);
    const auto after = timer.now();
    EXPECT_GE(timeout.deadline(), before + delay);
    EXPECT_LE(timeout.deadline(), after + delay + test::kClockIsAhead);
  }
  const auto before = timer.now();
  const Timeout negative = timer.new_timeout([] {}, -1h);
  EXPECT_GE(negative.deadline(), before) << "a negative delay is due now";
}

TEST(Handle, NowIsTheSteadyClock) {
  const HashedWheelTimer timer;
  const auto before = steady_clock::now();
  const auto now = timer.now();
  EXPECT_GE(now, before);
  EXPECT_LE(now, steady_clock::now());
}

/// The text with # for each number.
std::string shape_of(const Timeout& timeout) {
  std::string shape;
  for (const char c : text_of(timeout)) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) {
      shape += c;
    } else if (shape.empty() || shape.back() != '#') {
      shape += '#';
    }
  }
  return shape;
}

TEST(Handle, Prints) {
  Latch ran;
  HashedWheelTimer timer(1ms);
  Timeout far = timer.new_timeout([] {}, kFar);
  EXPECT_EQ(shape_of(far), "Timeout(deadline: # ns later)");
  far.cancel();
  EXPECT_EQ(shape_of(far), "Timeout(deadline: # ns later, cancelled)");
  const Timeout expired = timer.new_timeout([&] { ran.count_down(); }, 0ms);
  ASSERT_TRUE(ran.wait());
  EXPECT_EQ(shape_of(expired), "Timeout(deadline: # ns ago, expired)");
}

TEST(Handle, PrintsThatADeadlineNeverComes) {
  HashedWheelTimer timer;
  EXPECT_EQ(text_of(timer.new_timeout([] {}, std::chrono::nanoseconds::max())), "Timeout(deadline: never)");
  const std::string past = text_of(timer.new_timeout([] {}, std::chrono::nanoseconds::min()));
  EXPECT_TRUE(contains(past, "ago") || contains(past, "now")) << past;
}

TEST(Handle, PrintsTheTimeUntilTheDeadline) {
  HashedWheelTimer timer;
  const Timeout timeout = timer.new_timeout([] {}, kFar);
  const std::string text = text_of(timeout);
  const std::int64_t left = std::stoll(text.substr(std::string("Timeout(deadline: ").size()));
  EXPECT_LE(left, std::chrono::nanoseconds(kFar).count());
  EXPECT_GT(left, std::chrono::nanoseconds(kFar - kGenerous).count());
}

TEST(Handle, PrintsOneDeadlineWhileAnotherThreadMovesIt) {
  ManualTimer timer;  // keeps a timeout pending although its deadline has passed
  const Timeout timeout = timer.new_timeout([] {}, 1h);
  std::jthread mover([copy = timeout, now = timer.now()](const std::stop_token& over) mutable {
    while (!over.stop_requested()) {
      copy.reschedule(now - 1h);
      copy.reschedule(now + 1h);
    }
  });
  const std::string before("Timeout(deadline: ");
  for (const Deadline end(100ms); !end.passed();) {
    const std::string text = text_of(timeout);
    ASSERT_LE(std::stoull(text.substr(before.size())), 3'600'000'000'000U) << text;
  }
}

// Raises the count by hand, because so many handles would take 16 MiB.
TEST(HandleDeathTest, MoreThanCanBeCountedEndTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  HashedWheelTimer timer;
  const Timeout timeout = timer.new_timeout([] {}, kFar);
  internal::Node& node = *internal::Node::of(timeout);
  constexpr std::uint64_t kMost = 2'097'151;  // README.md, "Limits"
  constexpr std::uint64_t kMore = kMost - 2;  // besides `timeout` and `last`
  node.word.fetch_add(kMore * internal::Node::kReference);
  {
    const Timeout last = timeout;
  }
  EXPECT_DEATH(
      {
        count_until_abort();
        const Timeout last = timeout;
        const Timeout one_too_many = last;
      },
      "hashed_wheel_timer: more than 2\\^21 handles of one timeout\n");
  node.word.fetch_sub(kMore * internal::Node::kReference);
}

TEST(HandleDeathTest, MoreThanCanBeCountedByFindEndTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  HashedWheelTimer timer;
  const TimeoutId id = timer.add([] {}, kFar);
  const Timeout timeout = timer.find(id);
  internal::Node& node = *internal::Node::of(timeout);
  constexpr std::uint64_t kMore = 2'097'151 - 1;  // besides `timeout`
  node.word.fetch_add(kMore * internal::Node::kReference);
  EXPECT_DEATH(
      {
        count_until_abort();
        timer.find(id);
      },
      "hashed_wheel_timer: more than 2\\^21 handles of one timeout\n");
  node.word.fetch_sub(kMore * internal::Node::kReference);
}

}  // namespace
}  // namespace hwt::test
