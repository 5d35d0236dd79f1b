// KeyedTimer: a thread stands still with the lock of a shard, as if the system had preempted it. The worker does not
// wait for that thread, and every value expires when it is due.

#include "hashed_wheel_timer/keyed_timer.h"
#include "tests/support/held_timer.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

/// Counts its objects.
struct Counted {
  static inline std::atomic<int> alive = 0;

  explicit Counted(int its_number) : number(its_number) { ++alive; }
  Counted(Counted&& other) noexcept : number(other.number) { ++alive; }
  Counted& operator=(Counted&&) = delete;
  ~Counted() { --alive; }

  int number;
};

/// An Equal that stands still when the test asks for it. KeyedTimer calls it with the lock held.
struct StandsStill {
  static inline std::atomic<Hold*> hold = nullptr;

  bool operator()(const Counted& a, const Counted& b) const {
    if (Hold* const here = hold.exchange(nullptr)) (*here)();
    return a.number == b.number;
  }
};
/// A Hash that puts all keys into one shard.
struct Alike {
  std::size_t operator()(const Counted&) const { return 0; }
};

class KeyedLock : public ::testing::Test {
 protected:
  using Keyed = KeyedTimer<Counted, int, Alike, StandsStill>;

  ~KeyedLock() override {
    release();
    keyed_.reset();
    timer_.stop();
    EXPECT_EQ(Counted::alive, 0);
  }

  /// Calls f(keyed) on a thread, which then holds the lock until release().
  void hold_lock_in(std::function<void(Keyed&)> f) {
    StandsStill::hold = &hold_.emplace();
    holder_ = std::jthread([this, f] { f(*keyed_); });
    ASSERT_TRUE(hold_->wait_until_entered());
  }
  void release() {
    if (hold_) hold_->let_go();
    if (holder_.joinable()) holder_.join();
  }
  /// Advances the timer on this thread. Returns although another thread holds the lock.
  [[nodiscard]] bool advance_to_expired(int count) {
    timer_.advance(1s);
    return expired_ >= count;
  }

  std::atomic<int> expired_ = 0, last_value_ = 0;
  std::function<void(int)> during_;
  std::optional<Hold> hold_;
  ManualTimer timer_;
  std::optional<Keyed> keyed_{std::in_place, timer_, [this](const Counted& key, int& value) {
                                if (during_) during_(key.number);
                                last_value_ = value;
                                ++expired_;
                              }};
  std::jthread holder_;
};

TEST_F(KeyedLock, ExpiriesAndOtherTimeoutsDoNotWaitForTheLock) {
  for (int key = 1; key <= 100; ++key) (void)keyed_->set(Counted(key), key, 20ms);
  std::optional<KeyedResult> added;
  hold_lock_in([&](Keyed& keyed) { added = keyed.set(Counted(0), 0, kFar); });
  EXPECT_TRUE(advance_to_expired(100)) << "those of the same shard";
  EXPECT_EQ(keyed_->size(), 0U);
  release();
  EXPECT_EQ(added, KeyedResult::Added);
  EXPECT_EQ(expired_, 100);
  EXPECT_EQ(keyed_->size(), 1U);
  EXPECT_EQ(Counted::alive, 1) << "the thread that held the lock removes the cells";
  for (int key = 1; key <= 100; ++key) EXPECT_FALSE(keyed_->contains(Counted(key)));
  EXPECT_EQ(keyed_->drain().size(), 1U);
}

/// The value has expired when the thread that holds the lock looks for it.
TEST_F(KeyedLock, TheThreadThatHasTheLockFindsNoExpiredValue) {
  const std::vector<std::function<void(Keyed&)>> calls{
      [](Keyed& keyed) { EXPECT_EQ(keyed.remove(Counted(1)), std::nullopt); },
      [](Keyed& keyed) { EXPECT_EQ(keyed.move(Counted(1), kFar), KeyedResult::NotFound); },
      [](Keyed& keyed) { EXPECT_EQ(keyed.set(Counted(1), 11, kFar), KeyedResult::Added); }};
  int expired = 0;
  for (const auto& call : calls) {
    (void)keyed_->set(Counted(1), 10, 20ms);
    hold_lock_in(call);
    EXPECT_TRUE(advance_to_expired(++expired));
    EXPECT_EQ(last_value_, 10);
    release();
    EXPECT_EQ(timer_.pending_timeouts(), static_cast<std::int64_t>(keyed_->size()));
    EXPECT_EQ(Counted::alive, static_cast<int>(keyed_->size()));
  }
  EXPECT_EQ(keyed_->size(), 1U) << "the set() has added the key again";
  EXPECT_EQ(keyed_->remove(Counted(1)), 11);
}

// The cell still exists while on_expire runs, but no call may find it.
TEST_F(KeyedLock, AKeyIsNotFoundWhileItsOnExpireRuns) {
  Hold hold;
  during_ = [&](int) { hold(); };
  (void)keyed_->set(Counted(1), 10, 20ms);
  hold_lock_in([&](Keyed& keyed) { keyed.contains(Counted(1)); });
  std::jthread worker([&] { timer_.advance(1s); });
  EXPECT_TRUE(hold.wait_until_entered());
  release();
  EXPECT_FALSE(keyed_->contains(Counted(1)));
  EXPECT_EQ(keyed_->remaining(Counted(1)), std::nullopt);
  EXPECT_EQ(keyed_->move(Counted(1), kFar), KeyedResult::NotFound);
  EXPECT_EQ(keyed_->remove(Counted(1)), std::nullopt);
  EXPECT_EQ(keyed_->size(), 0U);
  EXPECT_EQ(keyed_->set(Counted(1), 11, kFar), KeyedResult::Added);
  const auto drained = keyed_->drain();
  ASSERT_EQ(drained.size(), 1U);
  EXPECT_EQ(drained[0].second, 11);
  EXPECT_EQ(keyed_->size(), 0U);
  EXPECT_EQ(keyed_->set(Counted(1), 12, kFar), KeyedResult::Added);
  EXPECT_EQ(keyed_->size(), 1U) << "drain() has left nothing to be counted off";
  hold.let_go();
  worker.join();
  EXPECT_EQ(expired_, 1);
  EXPECT_EQ(keyed_->size(), 1U);
  EXPECT_EQ(keyed_->remove(Counted(1)), 12) << "its own cell goes, not the later one of the same key";
}

// The expiry is counted before set() returns, and must not offset another value.
TEST(KeyedSize, NeverCountsTooFewWhenAValueExpiresBeforeItsSetReturns) {
  Latch expired;
  HeldTimer timer;
  KeyedTimer<Counted, int, Alike, StandsStill> keyed(timer, [&](const Counted&, int&) { expired.count_down(); });
  ASSERT_EQ(keyed.set(Counted(1), 1, kFar), KeyedResult::Added);
  timer.hold_next(HeldTimer::At::Exit);
  std::jthread setting([&] { EXPECT_EQ(keyed.set(Counted(2), 2, 1ms), KeyedResult::Added); });
  ASSERT_TRUE(timer.wait_until_held());
  ASSERT_TRUE(expired.wait());
  EXPECT_EQ(keyed.size(), 1U) << "the first value";
  timer.go_on();
  setting.join();
  EXPECT_EQ(keyed.size(), 1U);
}

// Otherwise objects that the function owns would live as long as the last timeout, perhaps for years.
TEST_F(KeyedLock, AnOnExpireThatDestroysTheKeyedTimerIsDestroyedWhenItReturns) {
  const auto owned = std::make_shared<int>();
  during_ = [&](int) {
    release();  // no other call may race the destructor
    keyed_.reset();
    EXPECT_EQ(owned.use_count(), 2) << "the function is still running";
  };
  keyed_.emplace(timer_, [this, owned](const Counted& key, int&) { during_(key.number); });
  (void)keyed_->set(Counted(1), 10, kFar);
  (void)keyed_->set(Counted(2), 20, kFar);
  std::vector<Timeout> late = timer_.stop();
  ASSERT_EQ(late.size(), 2U);
  hold_lock_in([](Keyed& keyed) { keyed.contains(Counted(1)); });
  late[0].task().run(late[0]);
  EXPECT_EQ(keyed_, std::nullopt);
  EXPECT_EQ(owned.use_count(), 1);
  late[1].task().run(late[1]);  // finds nothing
}

}  // namespace
}  // namespace hwt
