// The youngest entries of a producer (EntryBuffer), and the queue that takes entries which stay alive
// (Inbox::hand_over).

#include "hashed_wheel_timer/internal/handover/entry_buffer.h"

#include <deque>

#include "hashed_wheel_timer/internal/handover/inbox.h"
#include "hashed_wheel_timer/internal/handover/intake.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"

namespace hwt::test {
namespace {

using EntryBuffer = internal::EntryBuffer<internal::NodeName>;
using internal::Inbox;
using internal::Intake;
using internal::NodeName;

constexpr std::size_t kFewest = internal::Tuning::kFewest;

NodeName entry(std::uint64_t number) { return NodeName(number); }

/// A buffer, and what must be in it.
class Model {
 public:
  void append(std::size_t room_if_full) {
    if (!buffer.append(entry(next_))) {
      const std::size_t room = buffer.extend(room_if_full, room_if_full);
      EXPECT_LE(room, room_if_full);
      if (room == 0) return;
      ASSERT_TRUE(buffer.append(entry(next_)));
    }
    expected.push_back(next_++);
  }
  void take(std::size_t max) {
    std::vector<NodeName> taken(max);
    const std::size_t count = buffer.take(taken.data(), max);
    EXPECT_EQ(count, std::min(max, expected.size()));
    for (std::size_t i = 0; i < count; ++i, expected.pop_front()) ASSERT_EQ(taken[i].value(), expected.front());
    passed_ -= std::min(passed_, count);
  }
  /// Makes a step of a sift.
  template <class Keep>
  void sift(std::size_t most, const Keep& keep) {
    std::size_t seen = 0;
    const bool ended = buffer.sift(most, [&](const NodeName& entry) {
      EXPECT_LT(passed_, expected.size());
      EXPECT_EQ(entry.value(), expected[passed_]);
      ++seen;
      if (keep(entry.value())) {
        ++passed_;
        return true;
      }
      expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(passed_));
      return false;
    });
    EXPECT_LE(seen, most);
    EXPECT_EQ(ended, passed_ == expected.size());
    if (ended) {
      passed_ = 0;
    } else {
      EXPECT_EQ(seen, most);
    }
  }

  EntryBuffer buffer;
  std::deque<std::uint64_t> expected;

 private:
  std::uint64_t next_ = 0;
  std::size_t passed_ = 0;  // of those expected: kept by the sift that is under way
};

TEST(EntryBuffer, KeepsWhatIsAliveInItsOrderWhateverComesInBetween) {
  std::minstd_rand random(1);
  const auto up_to = [&](std::size_t most) { return std::size_t{random()} % (most + 1); };
  Model model;
  for (int round = 0; round < 3000; ++round) {
    for (std::size_t count = up_to(40); count != 0; --count) model.append(1 + up_to(20));
    if (up_to(2) == 0) model.take(up_to(60));
    const std::size_t dies = 1 + up_to(5);
    const std::size_t most = up_to(1) == 0 ? up_to(30) : internal::Tuning::kMaxArray;
    if (up_to(2) == 0) model.sift(most, [&](std::uint64_t number) { return number % dies != 0; });
    if (model.buffer.size() != 0) {
      EXPECT_EQ(model.buffer.oldest().value(), model.expected.front());
    }
    ASSERT_EQ(model.buffer.size(), model.expected.size());
  }
  model.take(model.expected.size());
  EXPECT_EQ(model.buffer.size(), 0U);
}

/// Without a model, whose own memory would be counted.
class ABuffer : public testing::Test {
 protected:
  /// Appends so many entries, into arrays of `room` entries. Returns how many found room.
  std::size_t append(std::size_t count, std::size_t room) {
    for (std::size_t i = 0; i < count; ++i) {
      if (buffer.append(entry(i))) continue;
      if (buffer.extend(room, room) == 0) return i;
      EXPECT_TRUE(buffer.append(entry(i)));
    }
    return count;
  }
  /// Sifts, and keeps the `count` oldest entries.
  void keep(std::size_t count) {
    EXPECT_TRUE(buffer.sift(internal::Tuning::kMaxArray, [&](const NodeName&) { return count != 0 && count-- != 0; }));
  }
  std::int64_t bytes() const { return bytes_in_use - before_; }

  EntryBuffer buffer;

 private:
  const std::int64_t before_ = bytes_in_use;
};

TEST_F(ABuffer, RefusesWithoutMemoryAndKeepsWhatItHas) {
  append(10, 10);
  const Shortage shortage(0, Shortage::kAll);
  EXPECT_EQ(append(1, 10), 0U);
  EXPECT_EQ(buffer.size(), 10U);
  keep(5);
  EXPECT_EQ(append(6, 10), 5U) << "a sift makes room for so many";
  EXPECT_EQ(buffer.size(), 10U);
}

TEST_F(ABuffer, TakesNoMemoryWhileAsManyStayAlive) {
  constexpr std::size_t kRoom = 4 * kFewest;
  append(kFewest, kFewest);
  append(kRoom - kFewest, kRoom - kFewest);
  const std::int64_t before = bytes();
  const Shortage shortage(0, Shortage::kAll);
  for (int times = 0; times < 10; ++times) {
    keep(kFewest);
    EXPECT_EQ(append(kRoom - kFewest, kRoom - kFewest), kRoom - kFewest);
  }
  EXPECT_EQ(shortage.failed(), 0);
  EXPECT_EQ(bytes(), before);
}

/// Otherwise each entry more that stays alive would add a small array to the chain. The producer would then call
/// extend() for each of these arrays.
TEST_F(ABuffer, HasFewArraysAlthoughEverMoreStayAlive) {
  for (std::size_t alive = 1; alive < 4 * kFewest; ++alive) {
    keep(alive);
    std::size_t planned = 3 * alive;
    std::size_t extended = 0;
    for (; planned != 0; ++extended) {
      const std::size_t room = buffer.extend(planned, planned);
      ASSERT_EQ(append(room, 0), room);
      planned -= room;
    }
    ASSERT_LE(extended, 2U) << alive;
  }
}

/// extend() sizes the array for the planned entries, so its next calls need no memory.
TEST_F(ABuffer, HasFewArraysAlthoughItIsExtendedByLittle) {
  ASSERT_EQ(buffer.extend(kFewest, 64 * kFewest), kFewest);
  const Shortage shortage(0, Shortage::kAll);
  EXPECT_EQ(append(64 * kFewest, kFewest), 64 * kFewest);
}

TEST_F(ABuffer, UsesTheRoomOfEntriesThatWereTaken) {
  append(10, 10);
  std::array<NodeName, 10> taken;
  const Shortage shortage(0, Shortage::kAll);
  for (int times = 0; times < 10; ++times) {
    EXPECT_EQ(buffer.take(taken.data(), 10), 10U);
    keep(0);
    EXPECT_EQ(append(10, 10), 10U);
  }
}

TEST_F(ABuffer, KeepsALargeArrayIfThereIsNoMemoryForASmallOne) {
  append(100 * kFewest, 100 * kFewest);
  const Shortage shortage(0, Shortage::kAll);
  keep(0);
  EXPECT_EQ(append(100 * kFewest, 100 * kFewest), 100 * kFewest);
}

TEST_F(ABuffer, KeepsFewEntriesInASmallArray) {
  std::vector<NodeName> taken(50 * kFewest);
  const auto bytes_of_taken = static_cast<std::int64_t>(taken.size() * sizeof(NodeName));
  for (const std::size_t few : {std::size_t{3}, kFewest}) {
    append(100 * kFewest, 100 * kFewest);
    buffer.take(taken.data(), taken.size());
    keep(few);
    EXPECT_LE(bytes(), static_cast<std::int64_t>(2 * kFewest * sizeof(NodeName)) + bytes_of_taken);
    ASSERT_EQ(buffer.take(taken.data(), taken.size()), few);
    for (std::size_t i = 0; i < few; ++i) EXPECT_EQ(taken[i].value(), 50 * kFewest + i);
  }
}

TEST_F(ABuffer, KeepsTheMemoryOfTheEntriesThatAreToCome) {
  for (int arrays = 0; arrays < 100; ++arrays) append(kFewest, kFewest);
  keep(kFewest);
  buffer.trim(50 * kFewest);
  EXPECT_LE(bytes(), static_cast<std::int64_t>(55 * kFewest * sizeof(NodeName)));
  const Shortage shortage(0, Shortage::kAll);
  EXPECT_EQ(append(50 * kFewest, kFewest), 50 * kFewest);
}

TEST_F(ABuffer, KeepsAnArrayThatIsTooSmallIfThereIsNoMemoryForAnother) {
  append(10, 10);
  append(10, 10);
  keep(5);
  const Shortage shortage(0, Shortage::kAll);
  EXPECT_EQ(append(100, 100), 15U);
  EXPECT_EQ(buffer.size(), 20U);
}

TEST_F(ABuffer, GivesTheMemoryOfABurstBack) {
  constexpr auto kLittle = static_cast<std::int64_t>(2 * kFewest * sizeof(NodeName));
  for (const std::size_t room : {kFewest, 100 * kFewest}) {
    append(100 * kFewest, room);
    EXPECT_GT(bytes(), 100 * kLittle / 2);
    keep(0);
    buffer.trim(kFewest);
    EXPECT_LE(bytes(), kLittle);
  }
}

/// A place of the inbox that a pass has opened.
class APlace : public testing::Test {
 protected:
  void put(std::uint64_t first, std::uint64_t end) {
    for (std::uint64_t i = first; i != end; ++i) {
      if (!Inbox::put(place, entry(i))) {
        ASSERT_NE(Inbox::make_room(place, 100, 100), 0U);
        ASSERT_TRUE(Inbox::put(place, entry(i)));
      }
      inbox.list(place, 1);
    }
  }
  void expect_taken(std::uint64_t end) {
    intake.open(1, true);
    std::array<NodeName, 7> entries;
    std::uint64_t next = 0;
    while (const std::size_t count = intake.take(entries.data(), entries.size())) {
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(entries[i].value(), next++);
    }
    EXPECT_EQ(next, end);
  }

  Inbox inbox;
  Intake intake{inbox};
  Inbox::Place place;
};

TEST_F(APlace, GivesTheEntriesThatMovedToTheQueueFirst) {
  put(0, 1000);
  EXPECT_EQ(Inbox::hand_over(place, 700), 700U);
  put(1000, 1500);
  EXPECT_EQ(place.size(), 1500U);
  expect_taken(1500);
}

TEST_F(APlace, MovesNoMoreToTheQueueBeforeTheWorkerHasTakenTheLast) {
  put(0, 1000);
  EXPECT_EQ(Inbox::hand_over(place, 400), 400U);
  EXPECT_EQ(Inbox::hand_over(place, 400), 0U);
  expect_taken(1000);
  put(0, 10);
  EXPECT_EQ(Inbox::hand_over(place, 400), 10U);
  expect_taken(10);
}

TEST_F(APlace, LosesNothingIfTheQueueHasNoMemory) {
  put(0, 1000);
  without_memory([&] { EXPECT_LT(Inbox::hand_over(place, 1000), 1000U); });
  EXPECT_EQ(place.size(), 1000U);
  put(1000, 1100);
  expect_taken(1100);
}

TEST_F(APlace, IsLeftAloneByOthersWhileItsOwnerSifts) {
  put(0, 20);
  intake.open(1, true);
  std::array<NodeName, 7> entries;
  const bool ended = Inbox::sift(place, 1, [&](const NodeName&) {
    EXPECT_EQ(intake.take(entries.data(), entries.size()), 0U);
    EXPECT_TRUE(intake.held_up());
    EXPECT_EQ(Inbox::hand_over(place, 10), 0U);
    EXPECT_FALSE(Inbox::sift(place, 20, [](const NodeName&) { return false; }));
    return true;
  });
  EXPECT_FALSE(ended);
  expect_taken(20);
  EXPECT_FALSE(intake.held_up());
  EXPECT_FALSE(intake.any());
}

TEST_F(APlace, LeavesTheRoundWhenItsOwnerHasDroppedTheRest) {
  put(0, 10);
  intake.open(1, true);
  std::array<NodeName, 7> entries;
  ASSERT_EQ(intake.take(entries.data(), entries.size()), entries.size());
  EXPECT_TRUE(Inbox::sift(place, 10, [](const NodeName&) { return false; }));
  EXPECT_TRUE(intake.any());
  EXPECT_EQ(intake.take(entries.data(), entries.size()), 0U);
  EXPECT_FALSE(intake.any());
}

TEST(IntrusiveStack, AChainThatWasTakenIsPutBackBelowLaterElements) {
  struct Element {
    Element* next = nullptr;
  };
  std::array<Element, 4> elements;
  detail::IntrusiveStack<Element, &Element::next> stack;
  for (std::size_t i : {0, 1}) stack.push(elements.at(i));
  Element* const chain = stack.take_all();
  for (std::size_t i : {2, 3}) stack.push(elements.at(i));
  stack.put_back(*chain);
  for (std::size_t i : {3, 2, 1, 0}) EXPECT_EQ(stack.take_one(), &elements.at(i));
}

}  // namespace
}  // namespace hwt::test
