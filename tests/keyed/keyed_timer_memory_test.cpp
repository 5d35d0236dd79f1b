// KeyedTimer and memory: its behaviour without memory, and that it gives back all of it.

#include "hashed_wheel_timer/keyed_timer.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

/// Uses a timer first, because a thread keeps some memory from its first use on. So no test depends on earlier ones.
std::int64_t bytes_in_use_before() {
  ManualTimer().new_timeout([] {}, 1ms);
  return bytes_in_use;
}

TEST(KeyedMemory, ALackOfMemoryChangesNothing) {
  ManualTimer timer;
  int expired = 0;
  KeyedTimer<int, std::string> keyed(timer, [&](const int&, std::string&) { ++expired; });
  const std::string value = "longer than what fits into a std::string";
  int failures = 0;
  // Every allocation of every operation fails once; sizes are such that tables have to grow.
  const auto until_it_passes = [&](auto operation) {
    for_each_allocation([&](std::int64_t n) {
      const std::size_t size = keyed.size();
      const std::int64_t pending = timer.pending_timeouts();
      const Outcome outcome = with_failing(n, operation);
      if (!outcome.bad_alloc) return outcome.struck;
      ++failures;
      EXPECT_EQ(keyed.size(), size);
      EXPECT_EQ(timer.pending_timeouts(), pending);
      return true;
    });
  };
  for (int key = 0; key < 500; ++key) {
    std::optional<KeyedResult> added;
    until_it_passes([&] {
      if (!added) added = key % 2 == 0 ? keyed.set(key, value, 1h) : keyed.set(key, value, timer.now() + 1h);
    });
    EXPECT_EQ(added, KeyedResult::Added);
  }
  until_it_passes([&] { EXPECT_EQ(keyed.set(1, value + value, 2h), KeyedResult::Replaced); });
  until_it_passes([&] { EXPECT_EQ(keyed.move(2, 1s), KeyedResult::Moved); });
  until_it_passes([&] { EXPECT_EQ(keyed.move(3, timer.now() - 1s), KeyedResult::Moved); });
  EXPECT_GT(failures, 1000);
  EXPECT_EQ(keyed.remove(1), value + value);
  std::optional<std::vector<std::pair<int, std::string>>> drained;
  until_it_passes([&] {
    if (!drained) drained = keyed.drain();
  });
  ASSERT_EQ(drained->size(), 499u);
  for (const auto& item : *drained) EXPECT_EQ(item.second, value);
  timer.advance(3h);
  EXPECT_EQ(expired, 0);
}

TEST(KeyedMemory, KeysThatComeAndGoLeaveNothingBehind) {
  ManualTimer timer;
  KeyedTimer<int, int> keyed(timer, [](const int&, int&) {});
  const auto round = [&](int first) {
    for (int key = first; key < first + 1000; ++key) (void)keyed.set(key, 0, 1ms + key % 3 * 1ms);
    for (int key = first; key < first + 1000; key += 2) keyed.remove(key);
    timer.advance(5ms);
  };
  for (int i = 0; i < 3; ++i) round(i * 1000);
  const std::int64_t before = bytes_in_use;
  for (int i = 3; i < 50; ++i) round(i * 1000);
  EXPECT_LE(bytes_in_use - before, 64 << 10);
}

TEST(KeyedMemory, AnExpiredKeyIsFreedWithoutAFurtherCall) {
  ManualTimer timer;
  const auto key = std::make_shared<int>(1);
  KeyedTimer<std::shared_ptr<int>, int> keyed(timer, [](const std::shared_ptr<int>&, int&) {});
  (void)keyed.set(key, 0, 1ms);
  timer.advance(1ms);
  EXPECT_EQ(key.use_count(), 1);
}

/// Equal, which is called with the lock held, calls a function of the test once.
struct CallsBack {
  static inline std::function<void()> during;

  bool operator()(int a, int b) const {
    if (during) std::exchange(during, nullptr)();
    return a == b;
  }
};

// A value that has replaced another one has a record of its own, beside the record of the timeout. Both are left to the
// thread that holds the lock.
TEST(KeyedMemory, AReplacedValueThatExpiresWhileTheLockIsHeldLeavesNothingBehind) {
  const std::int64_t before = bytes_in_use_before();
  {
    int expired = 0;
    ManualTimer timer;
    KeyedTimer<int, int, std::hash<int>, CallsBack> keyed(timer, [&](const int&, int& value) { expired = value; });
    (void)keyed.set(1, 10, kFar);
    EXPECT_EQ(keyed.set(1, 11, kFar), KeyedResult::Replaced);
    EXPECT_EQ(keyed.set(1, 12, 1ms), KeyedResult::Replaced);
    CallsBack::during = [&] { std::jthread([&] { timer.advance(1ms); }).join(); };
    keyed.contains(1);
    EXPECT_EQ(expired, 12);
    EXPECT_EQ(keyed.size(), 0U);
  }
  EXPECT_EQ(bytes_in_use, before);
}

// Each timeout that stop() returns holds its task, the task all shards, and each shard the handles of its timeouts,
// until the destructor of the KeyedTimer drops them.
TEST(KeyedMemory, TimeoutsOfAStoppedTimerAreNoCycleOfReferences) {
  const std::int64_t before = bytes_in_use_before();
  for (const bool timeouts_go_last : {false, true}) {
    std::vector<Timeout> unprocessed;
    ManualTimer timer;
    KeyedTimer<int, int> keyed(timer, [](const int&, int&) {});
    for (int key = 0; key < 100; ++key) (void)keyed.set(key, key, 1ms);
    unprocessed = timer.stop();
    EXPECT_EQ(unprocessed.size(), 100u);
    if (!timeouts_go_last) unprocessed = {};
  }
  EXPECT_EQ(bytes_in_use, before);
}

}  // namespace
}  // namespace hwt
