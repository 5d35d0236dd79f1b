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

TEST(Handle, IsAValue) {
  HashedWheelTimer timer;
  const Timeout original = timer.new_timeout([] {}, kFar);
  const Timeout other = timer.new_timeout([] {}, kFar);
  Timeout copy = original;
  Timeout assigned;
  assigned = copy;
  EXPECT_EQ(copy, original);
  EXPECT_EQ(assigned, original);
  EXPECT_NE(original, other);
  EXPECT_NE(original, Timeout());
  EXPECT_EQ(std::hash<Timeout>()(original), std::hash<Timeout>()(copy));
  const std::unordered_set<Timeout> set{original, other, copy, Timeout(), Timeout()};
  EXPECT_EQ(set.size(), 3U);
  EXPECT_TRUE(set.contains(copy));

  Timeout moved = std::move(copy);
  EXPECT_FALSE(copy);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(moved, original);
  assigned = other;
  assigned = std::move(moved);
  EXPECT_FALSE(moved);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(assigned, original);
  EXPECT_EQ(timer.pending_timeouts(), 2) << "dropping a handle cancels nothing";

  Timeout& alias = assigned;
  assigned = alias;
  EXPECT_EQ(assigned, original);
  assigned = std::move(alias);
  EXPECT_EQ(assigned, original);

  Timeout null;
  assigned.swap(null);
  EXPECT_EQ(null, original);
  EXPECT_FALSE(assigned);
  using std::swap;
  swap(assigned, null);
  assigned.swap(assigned);
  EXPECT_EQ(assigned, original);
  EXPECT_TRUE(assigned.cancel());
  EXPECT_TRUE(original.is_cancelled());
  EXPECT_FALSE(Timeout(original).cancel());
}

TEST(Handle, DeadlineIsTheDelayFromTheCallByTheSteadyClock) {
  HashedWheelTimer timer;
  for (const std::chrono::nanoseconds delay :
       {std::chrono::nanoseconds(0), 1234567ns, std::chrono::nanoseconds(kFar)}) {
    const auto before = timer.now();
    const Timeout timeout = timer.new_timeout([] {}, delay);
    const auto after = timer.now();
    EXPECT_GE(timeout.deadline(), before + delay);
    EXPECT_LE(timeout.deadline(), after + delay + test::kClockIsAhead);
  }
  const auto before = steady_clock::now();
  const auto now = timer.now();
  EXPECT_GE(now, before);
  EXPECT_LE(now, steady_clock::now());
  const Timeout negative = timer.new_timeout([] {}, -1h);
  EXPECT_GE(negative.deadline(), now) << "a negative delay is due now";
}

TEST(Handle, PrintsTheTimeUntilTheDeadlineOrThatItNeverComes) {
  ManualTimer manual(1ms, steady_clock::time_point(1h));
  Timeout cancelled = manual.new_timeout([] {}, 1s);
  const Timeout expired = manual.new_timeout([] {}, 1ms);
  EXPECT_EQ(text_of(cancelled), "Timeout(deadline: 1000000000 ns later)");
  EXPECT_EQ(text_of(manual.new_timeout([] {}, 0ns)), "Timeout(deadline: now)");
  EXPECT_EQ(text_of(manual.new_timeout([] {}, std::chrono::nanoseconds::max())), "Timeout(deadline: never)");
  manual.advance(3ms);
  cancelled.cancel();
  EXPECT_EQ(text_of(cancelled), "Timeout(deadline: 997000000 ns later, cancelled)");
  EXPECT_EQ(text_of(expired), "Timeout(deadline: 2000000 ns ago, expired)");
  HashedWheelTimer timer;
  const std::string past = text_of(timer.new_timeout([] {}, std::chrono::nanoseconds::min()));
  EXPECT_TRUE(contains(past, "ago") || contains(past, "now")) << past;
  const std::string far = text_of(timer.new_timeout([] {}, kFar));
  const std::chrono::nanoseconds left(std::stoll(far.substr(std::string("Timeout(deadline: ").size())));
  EXPECT_LE(left, kFar);
  EXPECT_GT(left, kFar - kGenerous);
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
  const TimeoutId id = timer.add([] {}, kFar);
  const Timeout timeout = timer.find(id);
  internal::Node& node = *internal::Node::of(timeout);
  constexpr std::uint64_t kMost = 2'097'151;  // README.md, "Limits"
  constexpr std::uint64_t kMore = kMost - 2;  // besides `timeout` and `last`
  node.word.fetch_add(kMore * internal::Node::kReference);
  for (const bool by_find : {false, true}) {
    EXPECT_DEATH(
        {
          count_until_abort();
          const Timeout last = timeout;
          const Timeout one_too_many = by_find ? timer.find(id) : last;
        },
        "hashed_wheel_timer: more than 2\\^21 handles of one timeout\n");
  }
  {
    const Timeout last = timer.find(id);
  }
  node.word.fetch_sub(kMore * internal::Node::kReference);
}

}  // namespace
}  // namespace hwt::test
