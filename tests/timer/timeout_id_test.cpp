// TimeoutId: what Timer::add() returns and Timer::cancel() takes, for every timer. An id never names a second timeout.

#include "hashed_wheel_timer/timeout_id.h"

#include <unordered_set>

#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/memory/slab.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/any_timer.h"

namespace hwt::test {
namespace {
using internal::Node;

static_assert(sizeof(TimeoutId) == 8);
static_assert(std::is_trivially_copyable_v<TimeoutId>);
static_assert(!std::is_convertible_v<TimeoutId, bool>, "explicit only");
static_assert(!std::is_convertible_v<std::uint64_t, TimeoutId>, "explicit only");

constexpr TimeoutId kSeven = TimeoutId::from_value(7);
static_assert(!TimeoutId() && TimeoutId().value() == 0, "names no timeout");
static_assert(kSeven && kSeven.value() == 7 && kSeven == TimeoutId::from_value(7) && kSeven != TimeoutId());
static_assert(TimeoutId() < kSeven && TimeoutId::from_value(std::uint64_t{1} << 63) > kSeven);

template <class T>
class IdOf : public ::testing::Test {
 protected:
  std::atomic<int> runs_ = 0;
};
TYPED_TEST_SUITE(IdOf, AllTimers);

TYPED_TEST(IdOf, AnExpiredTimeoutIsGone) {
  const auto timer = make_timer<TypeParam>();
  const auto deadline = timer->now() + 5ms;
  std::atomic<bool> early = false;
  const auto run = [&] {
    if (timer->now() < deadline) early = true;
    ++this->runs_;
  };
  const std::array ids{timer->add(run, 5ms), timer->add(run, deadline), timer->try_add(run, 5ms),
                       timer->try_add(run, deadline)};
  const Timeout keeps_its_node = timer->find(ids[0]);
  EXPECT_TRUE(passes_until(*timer, [&] { return this->runs_ == 4; }));
  EXPECT_FALSE(early);
  for (const TimeoutId id : ids) {
    EXPECT_TRUE(eventually([&] { return timer->cancel(id) == CancelResult::Gone; })) << "the task may just be ending";
    EXPECT_FALSE(timer->find(id));
    EXPECT_FALSE(timer->reschedule(id, 1ms));
  }
}

TYPED_TEST(IdOf, ARunningTaskIsRunning) {
  TimeoutId id;
  std::array<CancelResult, 2> inside{};
  bool same = false;
  const auto timer = make_timer<TypeParam>();
  const auto run = [&](Timeout& self) {
    inside = {timer->cancel(id), timer->cancel_and_wait(id)};
    same = timer->find(id) == self;
    ++this->runs_;
  };
  std::unique_ptr<Gate> gate = hold_worker(*timer);  // the task does not run before this thread has stored the id
  id = timer->add(run, 5ms);
  gate.reset();
  EXPECT_TRUE(passes_until(*timer, [&] { return this->runs_ == 1; }));
  EXPECT_EQ(inside[0], CancelResult::Running);
  EXPECT_EQ(inside[1], CancelResult::Running) << "it cannot wait for itself";
  EXPECT_TRUE(same);
}

TYPED_TEST(IdOf, ATimeoutIsGoneForOtherTimers) {
  const auto timer = make_timer<TypeParam>();
  auto other = make_timer<TypeParam>();
  const TimeoutId mine = timer->add([] {}, kFar);
  const TimeoutId its = other->add([] {}, kFar);
  EXPECT_NE(mine, its);
  EXPECT_EQ(other->cancel(mine), CancelResult::Gone);
  EXPECT_EQ(timer->cancel(its), CancelResult::Gone);
  other.reset();
  EXPECT_EQ(timer->cancel(its), CancelResult::Gone) << "of a timer that was destroyed";
  other = make_timer<TypeParam>();
  for (int i = 0; i < 100; ++i) other->add([] {}, kFar);
  EXPECT_EQ(other->cancel(its), CancelResult::Gone) << "in memory that has another timer now";
  EXPECT_EQ(other->pending_timeouts(), 100);
  EXPECT_EQ(timer->cancel(mine), CancelResult::Cancelled);
}

TYPED_TEST(IdOf, AnyOtherNumberIsGone) {
  const auto timer = make_timer<TypeParam>();
  const TimeoutId id = timer->add([] {}, kFar);
  const auto expect_gone = [&](std::uint64_t value) {
    if (value == id.value()) return;
    const TimeoutId other = TimeoutId::from_value(value);
    ASSERT_EQ(timer->cancel(other), CancelResult::Gone) << value;
    ASSERT_EQ(timer->cancel_and_wait(other), CancelResult::Gone) << value;
    ASSERT_FALSE(timer->find(other)) << value;
  };
  for (std::uint64_t value = 0; value < 5000; ++value) {
    expect_gone(value);
    expect_gone(~value);
    expect_gone(value << 32);
    expect_gone(id.value() + value);
    expect_gone(id.value() - value);
  }
  for (int bit = 0; bit < 64; ++bit) expect_gone(id.value() ^ std::uint64_t{1} << bit);
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) expect_gone(random());
  EXPECT_EQ(timer->cancel(id), CancelResult::Cancelled);
}

TYPED_TEST(IdOf, ATimeoutMovesItsDeadline) {
  const auto timer = make_timer<TypeParam>();
  std::unique_ptr<Gate> gate = hold_worker(*timer);  // neither is due before it is moved
  const TimeoutId earlier = timer->add([this] { ++this->runs_; }, kFar);
  const TimeoutId later = timer->add([this] { ++this->runs_; }, 5ms);
  EXPECT_TRUE(timer->reschedule(later, kFar));
  EXPECT_TRUE(timer->reschedule(earlier, 5ms));
  const auto deadline = timer->find(earlier).deadline();
  gate.reset();
  EXPECT_TRUE(passes_until(*timer, [&] { return this->runs_ == 1; }));
  EXPECT_GE(timer->now(), deadline);
  const auto far = timer->now() + 2 * kFar;
  EXPECT_TRUE(timer->reschedule(later, far));
  EXPECT_EQ(timer->find(later).deadline(), far);
  EXPECT_FALSE(timer->reschedule(TimeoutId(), 1ms));
  EXPECT_EQ(message_of<std::invalid_argument>([&] { timer->reschedule(later, kNanDelay); }),
            "reschedule: delay: NaN (expected: a number)");
  EXPECT_EQ(timer->cancel(later), CancelResult::Cancelled);
}

TYPED_TEST(IdOf, APendingTimeoutIsFoundAsAHandleAndOneOfAStoppedTimerIsGone) {
  const auto timer = make_timer<TypeParam>();
  const TimeoutId id = timer->add([] {}, kFar);
  Timeout handle = timer->find(id);
  ASSERT_TRUE(handle);
  EXPECT_EQ(handle, timer->find(id));
  EXPECT_EQ(handle.timer(), timer.get());
  EXPECT_TRUE(handle.cancel());
  EXPECT_EQ(timer->cancel(id), CancelResult::Gone);
  EXPECT_FALSE(timer->find(id));
  EXPECT_TRUE(handle.is_cancelled()) << "a handle keeps what it names";
  const TimeoutId of_stopped = timer->add([this] { ++this->runs_; }, kFar);
  const std::vector<Timeout> stopped = timer->stop();
  ASSERT_EQ(stopped.size(), 1U);
  EXPECT_EQ(timer->cancel(of_stopped), CancelResult::Gone);
  handle = stopped[0];
  handle.task().run(handle);
  EXPECT_EQ(this->runs_, 1) << "stop() returns handles for timeouts with ids too";
  EXPECT_EQ(message_of<IllegalState>([&] { timer->add([] {}, kFar); }), "add: the timer has been stopped");
  EXPECT_FALSE(timer->try_add([] {}, kFar));
}

TYPED_TEST(IdOf, ARefusedTimeoutIsNone) {
  const auto timer = make_timer<TypeParam>(Options{.max_pending_timeouts = 1});
  const std::function<void()> empty;
  EXPECT_EQ(message_of<std::invalid_argument>([&] { timer->add(empty, kFar); }),
            "add: task: null (expected: a callable or a TimerTask)");
  EXPECT_EQ(message_of<std::invalid_argument>([&] { timer->add([] {}, kNanDelay); }),
            "add: delay: NaN (expected: a number)");
  EXPECT_FALSE(timer->try_add(empty, kFar));
  const TimeoutId id = timer->add([] {}, kFar);
  EXPECT_EQ(message_of<RejectedExecution>([&] { timer->add([] {}, kFar); }),
            "add: max_pending_timeouts: 1 timeouts are pending already");
  EXPECT_EQ(timer->try_add([] {}, timer->now() + kFar).value(), 0U);
  EXPECT_EQ(timer->cancel(id), CancelResult::Cancelled);
  EXPECT_TRUE(timer->add([] {}, kFar)) << "there is room again";
}

/// Either the thread that scheduled it cancels it, or one that never used the timer. The threads use two timers in
/// turn. The timeout has a handle or none, and a callable that must be destroyed, is too large for a node, or neither.
TYPED_TEST(IdOf, ATimeoutIsCancelledByAnyThreadInAnyState) {
  const auto timer = make_timer<TypeParam>();
  const auto other = make_timer<TypeParam>();
  const auto token = std::make_shared<int>();
  const std::array<std::function<TimeoutId()>, 3> ways{
      [&] { return timer->add([] {}, kFar); }, [&] { return timer->add([token] {}, kFar); },
      [&] { return timer->add([token, n = std::array<char, 200>()] { static_cast<void>(n); }, kFar); }};
  for (unsigned state = 0; state < 8; ++state)
    for (const auto& add : ways) {
      const TimeoutId id = add();
      const bool in_wheel = (state & 1) != 0;
      const bool has_handle = (state & 2) != 0;
      const bool by_another_thread = (state & 4) != 0;
      if (in_wheel) settle(*timer);
      Timeout found = has_handle ? timer->find(id) : Timeout();
      other->add([] {}, kFar);
      const auto cancel = [&] {
        EXPECT_EQ(timer->cancel(id), CancelResult::Cancelled);
        EXPECT_EQ(token.use_count(), 1);
        EXPECT_EQ(timer->cancel(id), CancelResult::Gone);
      };
      by_another_thread ? std::jthread(cancel).join() : cancel();
      EXPECT_EQ(static_cast<bool>(found), found.is_cancelled());
      EXPECT_FALSE(found.cancel());
    }
  settle(*timer);
  EXPECT_EQ(timer->pending_timeouts(), 0);
}

/// Its node is out of use, and goes with its timer, or with the last handle.
TYPED_TEST(IdOf, ATimeoutOfTheLastGenerationIsTheLastOneOfItsNode) {
  EXPECT_TRUE(Node::has_next(Node::kLastGeneration - 2));
  EXPECT_FALSE(Node::has_next(Node::kLastGeneration));
  for (const bool has_handle : {false, true}) {
    const Growth growth;
    auto timer = make_timer<TypeParam>();
    const TimeoutId id = timer->add([] {}, kFar);
    settle(*timer);
    Timeout handle = timer->find(id);
    Node* const node = Node::of(handle);
    if (!has_handle) handle = {};
    constexpr std::uint64_t kLast = std::uint64_t{Node::kLastGeneration} << Node::kGenerationShift;
    node->word = node->word % Node::kGeneration + kLast;  // in the wheel no entry names its generation
    EXPECT_EQ(timer->cancel(id), CancelResult::Gone);
    EXPECT_EQ(timer->cancel(TimeoutId::from_value(kLast | (id.value() & 0xFFFF'FFFF))), CancelResult::Cancelled);
    settle(*timer);
    for (int i = 0; i < 5000; ++i) EXPECT_NE(Node::of(timer->find(timer->add([] {}, kFar))), node);
    timer.reset();
    handle = {};
    EXPECT_LE(growth.now(), 16 << 10) << "what threads remember of timers that are gone";
  }
}

/// Such a page reads as 0, or as before. Entries and recheck requests of the inbox may still name its nodes.
TEST(ANodeOfAPageThatWentBack, IsFoundByNoNameAndStaysAsItIs) {
  constexpr std::uint32_t kLater = Node::kFirstGeneration + 4;
  Node node;
  for (const std::uint64_t word : {std::uint64_t{0}, Node::free_word(kLater)}) {
    node.word = word;
    for (std::uint32_t life = Node::kFirstGeneration; life < kLater; ++life) {
      EXPECT_EQ(node.arrive(life), Node::Arrival::Withdrawn);
      EXPECT_FALSE(node.withdraw_life(life));
      EXPECT_FALSE(Node::pending(node.cancel_life(life, false, [] { return true; }).before));
      EXPECT_FALSE(node.add_reference_of(life));
      EXPECT_FALSE(node.is_live(life));
    }
    EXPECT_EQ(node.recheck(), Node::Sight::Nothing);
    EXPECT_EQ(node.word, word);
  }
}

using internal::SlabDirectory;

TEST(SlabNumbers, AreFoundByTheirCoreAlone) {
  constexpr std::uint64_t kCore = std::uint64_t{1} << 60;  // no timer has it
  constexpr std::uint32_t kPlaces = 1U << SlabDirectory::kPlaceBits;
  std::array<std::byte, 256> memory{};
  std::vector<SlabDirectory::Entry*> entries;
  std::unordered_set<std::uint32_t> numbers;
  for (int i = 0; i < 6000; ++i) {  // more than one chunk has
    SlabDirectory::Entry* const entry = SlabDirectory::add(memory.data(), kCore, nullptr);
    ASSERT_NE(entry, nullptr);
    EXPECT_GE(entry->first_generation, Node::kFirstGeneration);
    entries.push_back(entry);
    ASSERT_TRUE(numbers.insert(entry->number).second);
    const std::uint32_t first = entry->number * kPlaces;
    EXPECT_EQ(SlabDirectory::find(first + 1, kCore), nullptr) << "not constructed yet";
    entry->add_group(1);
    EXPECT_EQ(static_cast<void*>(SlabDirectory::find(first + 2, kCore)), &memory[2 * internal::kCacheLine]);
    EXPECT_EQ(SlabDirectory::at(first + 2), SlabDirectory::find(first + 2, kCore));
    EXPECT_EQ(SlabDirectory::find(first, kCore), nullptr) << "the header";
    EXPECT_EQ(SlabDirectory::find(first + SlabDirectory::kGroup, kCore), nullptr)
        << "of a group that is not constructed";
    EXPECT_EQ(SlabDirectory::find(first + 2, kCore + 1), nullptr) << "of another core";
  }
  EXPECT_EQ(SlabDirectory::find(~std::uint32_t{0}, kCore), nullptr) << "a number that was never used";
  for (SlabDirectory::Entry* const entry : entries) {
    SlabDirectory::remove(*entry, entry->first_generation);
    EXPECT_EQ(SlabDirectory::find(entry->number * kPlaces + 2, kCore), nullptr);
    EXPECT_EQ(SlabDirectory::find(entry->number * kPlaces + 2, 1), nullptr) << "a freed number belongs to no core";
  }
}

TEST(SlabNumbers, AreUsedAgainWithLaterGenerationsUntilTheseAreUsedUp) {
  constexpr std::uint64_t kCore = std::uint64_t{1} << 60;
  SlabDirectory::Entry* const entry = SlabDirectory::add(nullptr, kCore, nullptr);
  ASSERT_NE(entry, nullptr);
  const std::uint32_t later = entry->first_generation + 100;
  SlabDirectory::remove(*entry, later);
  SlabDirectory::Entry* const again = SlabDirectory::add(nullptr, kCore, nullptr);
  ASSERT_EQ(again, entry) << "the latest one that became free";
  EXPECT_EQ(again->first_generation, later);
  SlabDirectory::remove(*again, Node::kLastGeneration + 1);
  SlabDirectory::Entry* const another = SlabDirectory::add(nullptr, kCore, nullptr);
  EXPECT_NE(another, entry);
  SlabDirectory::remove(*another, another->first_generation);
}

/// No two timeouts have the same id, also not those of two timers whose slabs have the same numbers. Memory that went
/// back to the system has later generations when it is used again, also if only a part of it was used in between.
TEST(IdAfterAPeak, NamesOneTimeoutOfAllTimers) {
  std::unordered_set<TimeoutId> all;
  for (int timers = 0; timers < 2; ++timers) {
    ManualTimer timer(1ms);
    for (const int count : {60'000, 20'000, 60'000, 60'000}) {
      std::vector<TimeoutId> ids;
      for (int i = 0; i < count; ++i) ids.push_back(timer.add([] {}, kFar));
      for (const TimeoutId id : all) ASSERT_EQ(timer.cancel(id), CancelResult::Gone);
      for (const TimeoutId id : ids) {
        ASSERT_TRUE(all.insert(id).second) << "an id of an earlier timeout";
        ASSERT_EQ(timer.cancel(id), CancelResult::Cancelled);
      }
      for (int i = 0; i < 300; ++i) timer.advance(200ms);
    }
  }
}

TEST(Id, MadeUpNamesNoTimeoutThatHasAHandle) {
  TimeoutId made_up;
  bool asked = false;
  HashedWheelTimer timer(1ms);
  HashedWheelTimer other(1ms);
  const auto names_none = [&] {
    asked = true;
    return timer.cancel(made_up) == CancelResult::Gone && timer.cancel_and_wait(made_up) == CancelResult::Gone &&
           !timer.find(made_up) && other.cancel_and_wait(made_up) == CancelResult::Gone;
  };
  const auto name_of = [](const Timeout& timeout) {
    const Node& node = *Node::of(timeout);
    return TimeoutId::from_value(internal::NodeName(internal::Slab::index_of(node), node.generation()).value());
  };
  const Timeout pending = timer.new_timeout([] {}, kFar);
  made_up = name_of(pending);
  EXPECT_TRUE(names_none());
  EXPECT_TRUE(ran_in_task(timer, [&](Timeout& self) {
    made_up = name_of(self);
    asked = false;
    EXPECT_TRUE(names_none());
  }));
  EXPECT_TRUE(asked);
  EXPECT_FALSE(pending.is_cancelled());
}

}  // namespace
}  // namespace hwt::test
