// KeyedTimer beyond the random calls of tests/fuzz/timers.cpp. Most tests use a ManualTimer. Some use an executor that
// keeps its jobs, so that they can act between the claim of a timeout and the run of its task.

#include "hashed_wheel_timer/keyed_timer.h"

#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using std::chrono::nanoseconds;
using Items = std::vector<std::pair<int, int>>;

Items sorted(Items items) {
  std::sort(items.begin(), items.end());
  return items;
}

/// A KeyedTimer that notes what expires, as (key, value), on a clock of 1 ms ticks.
class Keyed : public ::testing::Test {
 protected:
  Items take_expired() { return std::exchange(expired_, {}); }

  Items expired_;
  ManualTimer timer_{1ms, steady_clock::time_point()};
  KeyedTimer<int, int> keyed_{timer_, [this](const int& key, int& value) { expired_.emplace_back(key, value); }};
};

TEST_F(Keyed, StopTakesEverythingAndRefusesFromThenOn) {
  for (int key = 0; key < 100; ++key) (void)keyed_.set(key, key, 5ms);
  EXPECT_EQ(keyed_.stop().size(), 100u);
  EXPECT_EQ(keyed_.set(1, 1, 5ms), KeyedResult::Stopped);
  EXPECT_EQ(keyed_.move(1, 5ms), KeyedResult::Stopped);
  EXPECT_EQ(keyed_.remove(1), std::nullopt);
  EXPECT_EQ(keyed_.size(), 0u);
  EXPECT_EQ(keyed_.stop(), Items());
  EXPECT_EQ(keyed_.drain(), Items());
  timer_.advance(1s);
  EXPECT_EQ(take_expired(), Items());
  EXPECT_TRUE(timer_.new_timeout([] {}, 1ms)) << "the timer is borrowed, and never stopped";
}

TEST(KeyedInside, StopIsAllowed) {
  ManualTimer timer;
  std::optional<KeyedTimer<int, int>> keyed;
  int expired = 0;
  keyed.emplace(timer, [&](const int&, int&) {
    ++expired;
    EXPECT_EQ(keyed->set(5, 5, 1ms), KeyedResult::Added);
    EXPECT_EQ(keyed->stop(), (Items{{5, 5}}));
    EXPECT_EQ(keyed->set(5, 5, 1ms), KeyedResult::Stopped);
  });
  (void)keyed->set(0, 0, 1ms);
  timer.advance(1s);
  EXPECT_EQ(expired, 1);
}

TEST(KeyedInside, TheKeyedTimerMayBeDestroyed) {
  ManualTimer timer;
  const auto alive = std::make_shared<int>(0);
  std::unique_ptr<KeyedTimer<int, std::shared_ptr<int>>> keyed;
  keyed = std::make_unique<KeyedTimer<int, std::shared_ptr<int>>>(
      timer, [&keyed, alive](const int& key, std::shared_ptr<int>& value) {
        keyed.reset();
        EXPECT_EQ(key, 1);
        EXPECT_EQ(value.use_count(), 3) << "its own value and function live on, nothing else does";
      });
  for (int key = 1; key <= 100; ++key) (void)keyed->set(key, alive, key == 1 ? 1ms : 2ms);
  timer.advance(1s);
  EXPECT_EQ(keyed, nullptr);
  EXPECT_EQ(alive.use_count(), 1);
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

TEST(KeyedInside, AnExceptionGoesToTheErrorHandlerOfTheTimer) {
  ErrorLog log;
  ManualTimer timer(1ms, {}, log.handler());
  const auto alive = std::make_shared<int>(0);
  KeyedTimer<int, std::shared_ptr<int>> keyed(timer, [](const int& key, std::shared_ptr<int>&) {
    if (key % 2 == 0) throw std::runtime_error("key " + std::to_string(key));
  });
  for (int key = 0; key < 4; ++key) (void)keyed.set(key, alive, 1ms + key * 1ms);
  timer.advance(1s);
  EXPECT_EQ(log.errors(), (std::vector<std::string>{"key 0", "key 2"}));
  EXPECT_EQ(keyed.size(), 0u);
  EXPECT_EQ(alive.use_count(), 1);
}

/// Calls `f` where its value is destroyed.
struct AtEnd {
  std::function<void()> f;
  AtEnd() = default;
  explicit AtEnd(std::function<void()> at_end) : f(std::move(at_end)) {}
  AtEnd(AtEnd&& other) noexcept : f(std::exchange(other.f, nullptr)) {}
  AtEnd& operator=(AtEnd&&) = delete;
  ~AtEnd() {
    if (f) f();
  }
};

TEST(KeyedLocks, ValuesAreDestroyedWithNoLockHeld) {
  ManualTimer timer;
  std::optional<KeyedTimer<int, AtEnd>> keyed;
  keyed.emplace(timer, [](const int&, AtEnd&) {});
  int ends = 0;
  const auto set = [&](int key, When when) {
    return keyed->set(key, AtEnd([&] {
                        ++ends;
                        for (int other = 0; other < 100; ++other) keyed->contains(other);  // in its own shard too
                      }),
                      when);
  };
  EXPECT_EQ(set(1, 1h), KeyedResult::Added);
  EXPECT_EQ(set(1, 1h), KeyedResult::Replaced);
  EXPECT_EQ(ends, 1) << "replaced";
  keyed->remove(1);
  EXPECT_EQ(ends, 2) << "removed";
  (void)set(1, 1ms);
  timer.advance(1ms);
  EXPECT_EQ(ends, 3) << "expired";
  (void)set(1, 1h);
  keyed->drain();
  EXPECT_EQ(ends, 4) << "drained";
  (void)set(1, 1h);
  timer.stop();
  EXPECT_EQ(set(1, 1h), KeyedResult::Stopped);
  EXPECT_EQ(set(2, 1h), KeyedResult::Stopped);
  EXPECT_EQ(ends, 6) << "refused";
  keyed->stop();
  EXPECT_EQ(set(1, 1h), KeyedResult::Stopped);
  EXPECT_EQ(ends, 8) << "stopped";
}

/// A timer whose tasks are claimed when they are due and run when the test says so.
class Claimed : public ::testing::Test {
 protected:
  /// Returns once the timer has claimed `count` timeouts in all.
  [[nodiscard]] bool wait_for_claims(int count) { return jobs_.wait_for(count); }
  Items take_expired() { return std::exchange(expired_, {}); }

  Items expired_;
  JobQueue jobs_;
  HashedWheelTimer timer_{{.tick_duration = 1ms, .max_pending_timeouts = 1, .executor = jobs_.executor()}};
  std::function<void(const int&, int&)> note_ = [this](int key, int value) { expired_.emplace_back(key, value); };
  std::optional<KeyedTimer<int, int>> keyed_{std::in_place, timer_, note_};
};

TEST_F(Claimed, AnExpiryThatHasNotBegunLosesAgainstALaterDeadline) {
  int claims = 0;
  for (const bool by_deadline : {false, true})
    for (const bool by_set : {false, true}) {
      (void)keyed_->set(1, 10, by_deadline ? When(timer_.now() - 1s) : When(1ms));
      ASSERT_TRUE(wait_for_claims(++claims));
      EXPECT_EQ(keyed_->remaining(1), 0ns) << "never negative";
      const When later = by_deadline ? When(timer_.now() + 1h) : When(1h);
      EXPECT_EQ(by_set ? keyed_->set(1, 11, later) : keyed_->move(1, later),
                by_set ? KeyedResult::Replaced : KeyedResult::Moved);
      jobs_.run_all();
      EXPECT_EQ(take_expired(), Items());
      EXPECT_GT(keyed_->remaining(1), 30min);
      EXPECT_EQ(keyed_->move(1, by_deadline ? When(timer_.now()) : When(1ms)), KeyedResult::Moved);
      ASSERT_TRUE(wait_for_claims(++claims));
      jobs_.run_all();
      EXPECT_EQ(take_expired(), (Items{{1, by_set ? 11 : 10}}));
    }
}

TEST_F(Claimed, AnExpiryThatHasNotBegunLosesAgainstSet) {
  (void)keyed_->set(1, 10, 1ms);
  ASSERT_TRUE(wait_for_claims(1));
  EXPECT_EQ(keyed_->set(1, 11, 1ms), KeyedResult::Replaced);
  const auto old = jobs_.take();
  ASSERT_TRUE(wait_for_claims(2));
  for (const auto& job : old) job();
  EXPECT_EQ(take_expired(), Items()) << "although the new one is due as well";
  jobs_.run_all();
  EXPECT_EQ(take_expired(), (Items{{1, 11}}));
}

TEST_F(Claimed, AnExpiryThatHasNotBegunLosesAgainstTheEndOfItsValue) {
  struct Row {
    const char* name;
    std::function<void()> end;
    Items left;
  };
  const auto replace = [&] {
    EXPECT_EQ(keyed_->remove(1), 10);
    EXPECT_EQ(keyed_->set(1, 11, 1h), KeyedResult::Added);
  };
  int claims = 0;
  for (const auto& [name, end, left] : {Row{"remove() and a new value", replace, {{1, 11}}},
                                        Row{"drain()", [&] { EXPECT_EQ(keyed_->drain(), (Items{{1, 10}})); }, {}},
                                        Row{"stop()", [&] { EXPECT_EQ(keyed_->stop(), (Items{{1, 10}})); }, {}},
                                        Row{"the destructor", [&] { keyed_.reset(); }, {}}}) {
    SCOPED_TRACE(name);
    keyed_.emplace(timer_, note_);
    (void)keyed_->set(1, 10, 1ms);
    ASSERT_TRUE(wait_for_claims(++claims));
    end();
    jobs_.run_all();
    EXPECT_EQ(take_expired(), Items());
    EXPECT_EQ(keyed_ ? keyed_->drain() : Items(), left);
  }
}

TEST_F(Claimed, AnExpiryThatAnExecutorHasDroppedLeavesTheValueThere) {
  (void)keyed_->set(1, 10, 1ms);
  ASSERT_TRUE(wait_for_claims(1));
  jobs_.take();
  EXPECT_TRUE(keyed_->contains(1));
  EXPECT_EQ(keyed_->move(1, 1ms), KeyedResult::Moved);
  ASSERT_TRUE(wait_for_claims(2));
  jobs_.run_all();
  EXPECT_EQ(take_expired(), (Items{{1, 10}}));
}

TEST_F(Claimed, ARejectedMoveLeavesTheValueToTheExpiry) {
  (void)keyed_->set(1, 10, 1ms);
  ASSERT_TRUE(wait_for_claims(1));
  const Timeout other = timer_.new_timeout([] {}, 1h);  // takes the one place
  for (const When later : {When(1h), When(timer_.now() + 1h)}) {
    EXPECT_EQ(keyed_->move(1, later), KeyedResult::Rejected);
    EXPECT_EQ(keyed_->set(1, 11, later), KeyedResult::Rejected);
  }
  jobs_.run_all();
  EXPECT_EQ(take_expired(), (Items{{1, 10}}));
}

TEST_F(Claimed, AtTheLimitANewKeyIsRejectedAndAnOldOneReplaced) {
  EXPECT_EQ(keyed_->set(1, 10, 1h), KeyedResult::Added);
  EXPECT_EQ(keyed_->set(2, 20, 1ms), KeyedResult::Rejected);
  EXPECT_EQ(keyed_->set(2, 20, timer_.now() - 1ms), KeyedResult::Rejected);
  EXPECT_FALSE(keyed_->contains(2));
  EXPECT_EQ(keyed_->size(), 1u);
  EXPECT_EQ(keyed_->set(1, 11, 1h), KeyedResult::Replaced);
  EXPECT_EQ(keyed_->move(1, 1h), KeyedResult::Moved);
  EXPECT_EQ(keyed_->remove(1), 11);
  EXPECT_EQ(keyed_->set(2, 21, 1h), KeyedResult::Added);
}

TEST_F(Keyed, AStoppedTimerRefusesAndLosesNothing) {
  for (int key = 1; key <= 4; ++key) (void)keyed_.set(key, key * 10, 1ms);
  std::vector<Timeout> unprocessed = timer_.stop();
  EXPECT_EQ(unprocessed.size(), 4u);
  for (const When soon : {When(1ms), When(timer_.now())}) {
    EXPECT_EQ(keyed_.set(1, 11, soon), KeyedResult::Stopped);
    EXPECT_EQ(keyed_.set(9, 90, soon), KeyedResult::Stopped);
    EXPECT_EQ(keyed_.move(1, soon), KeyedResult::Stopped);
    EXPECT_EQ(keyed_.move(9, soon), KeyedResult::NotFound);
  }
  EXPECT_EQ(keyed_.size(), 4u);
  EXPECT_EQ(keyed_.remove(1), 10);
  // A program that stops a timer may run the returned timeouts. Those of removed values do nothing, the others expire.
  for (Timeout& timeout : unprocessed) {
    timeout.task().run(timeout);
    timeout.task().run(timeout);
  }
  EXPECT_EQ(sorted(take_expired()), (Items{{2, 20}, {3, 30}, {4, 40}}));
}

TEST(KeyedEnd, DestroysTheValuesAndTheFunctionAndCancelsTheTimeoutsOrThoseOfAStoppedTimerOutliveAll) {
  for (const bool stopped : {false, true}) {
    SCOPED_TRACE(stopped ? "stopped" : "not stopped");
    const auto alive = std::make_shared<int>(0);
    std::vector<Timeout> unprocessed;
    {
      ManualTimer timer;
      auto keyed = std::make_optional<KeyedTimer<int, std::shared_ptr<int>>>(
          timer, [alive](auto&, auto&) { ADD_FAILURE() << "nothing may expire"; });
      for (int key = 0; key < 100; ++key) (void)keyed->set(key, alive, 1ms);
      EXPECT_EQ(alive.use_count(), 102);
      if (stopped) {
        unprocessed = timer.stop();
        EXPECT_EQ(keyed->drain().size(), 100u);
      }
      keyed.reset();
      EXPECT_EQ(alive.use_count(), 1);
      EXPECT_EQ(timer.pending_timeouts(), 0);
    }
    for (Timeout& timeout : unprocessed) timeout.task().run(timeout);
  }
}

TEST(KeyedEnd, TheDestructorWaitsForEachRunningOnExpireThatItIsNotIn) {
  for (const bool inside : {false, true}) {
    SCOPED_TRACE(inside ? "inside" : "not inside");
    Latch entered, both_set, destroyed;
    bool finished = false;
    ThreadPerJob threads;
    HashedWheelTimer timer{{.tick_duration = 1ms, .executor = threads.executor()}};
    KeyedTimer<int, int>* keyed = nullptr;
    const auto destroy = [&] {
      delete keyed;
      EXPECT_TRUE(finished);
      destroyed.count_down();
    };
    keyed = new KeyedTimer<int, int>(timer, [&](const int& key, int&) {
      if (key == 2) {
        EXPECT_TRUE(both_set.wait());  // the destructor must not race set()
        return destroy();
      }
      entered.count_down();
      // move() refuses once the destructor has begun. The KeyedTimer may be used until this on_expire returns.
      EXPECT_TRUE(eventually([&] { return keyed->move(3, 1ms) == KeyedResult::Stopped; }));
      EXPECT_EQ(keyed->set(3, 3, 1ms), KeyedResult::Stopped);
      std::this_thread::sleep_for(10ms);
      finished = true;
    });
    (void)keyed->set(1, 1, 1ms);
    ASSERT_TRUE(entered.wait());
    if (inside) {
      (void)keyed->set(2, 2, 1ms);
      both_set.count_down();
    } else {
      destroy();
    }
    EXPECT_TRUE(destroyed.wait());
  }
}

TEST(KeyedEnd, ALateExpiryDoesNotDestroyARunningOnExpire) {
  JobQueue jobs;
  HashedWheelTimer timer{{.tick_duration = 1ms, .executor = jobs.executor()}};
  const auto alive = std::make_shared<int>(0);
  std::vector<std::function<void()>> late;
  KeyedTimer<int, int>* keyed = nullptr;
  keyed = new KeyedTimer<int, int>(timer, [&, alive](const int&, int&) {
    delete keyed;
    std::thread([&] {
      for (const auto& job : late) job();
    }).join();
    EXPECT_EQ(alive.use_count(), 2) << "this function is still running";
  });
  (void)keyed->set(1, 1, 1ms);
  ASSERT_TRUE(jobs.wait_for(1));
  late = jobs.take();
  (void)keyed->move(1, 1ms);
  ASSERT_TRUE(jobs.wait_for(2));
  jobs.run_all();
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(KeyedTypes, KeysAndValuesMayBeMoveOnlyWithACustomHashAndEqual) {
  using Key = std::unique_ptr<std::string>;
  using Number = std::unique_ptr<int>;
  const auto key = [](const char* text) { return std::make_unique<std::string>(text); };
  const auto number = [](int value) { return std::make_unique<int>(value); };
  const auto hash = [](const Key& k) { return k->size(); };
  const auto equal = [](const Key& a, const Key& b) { return *a == *b; };
  ManualTimer timer;
  std::string expired;
  KeyedTimer<Key, Number, decltype(hash), decltype(equal)> keyed(
      timer, [&](const Key& k, Number& value) { expired += *k + std::to_string(*value); });
  (void)keyed.set(key("a"), number(1), 1ms);
  (void)keyed.set(key("b"), number(2), 1ms);
  (void)keyed.set(key("c"), number(3), 1ms);
  EXPECT_EQ(keyed.set(key("a"), number(4), 2ms), KeyedResult::Replaced);
  const std::optional<Number> removed = keyed.remove(key("b"));
  ASSERT_TRUE(removed);
  EXPECT_EQ(**removed, 2);
  timer.advance(2ms);
  EXPECT_EQ(expired, "c3a4");
}

TEST(KeyedTypes, OnExpireMustNotBeEmpty) {
  ManualTimer timer;
  EXPECT_EQ(message_of<std::invalid_argument>([&] { KeyedTimer<int, int>(timer, nullptr); }),
            "KeyedTimer: on_expire: null (expected: a callable)");
}

constexpr detail::HashSeed kSeed{0x243f6a8885a308d3, 0x13198a2e03707345};

// Four in a row differ in the lowest two bits only; the other bits must be spread all the same.
TEST(KeyedHash, ConsecutiveKeysAreNeighboursAndStillSpread) {
  std::set<std::uint32_t> places, shards;
  for (std::size_t key = 0; key < 64; ++key) {
    const std::uint32_t hash = detail::mixed_hash(key, kSeed);
    EXPECT_EQ(hash & ~3U, detail::mixed_hash(key & ~std::size_t{3}, kSeed) & ~3U) << key;
    places.insert(hash & 0xFFFFF);
    shards.insert(hash >> 27);
  }
  EXPECT_EQ(places.size(), 64U);
  EXPECT_GE(shards.size(), 8U);
  // Multiples of a power of two, such as pointers, get all values of the lowest bits.
  std::set<std::uint32_t> lowest;
  for (std::size_t key = 0; key < 64; ++key) lowest.insert(detail::mixed_hash(key * 4096, kSeed) & 7);
  EXPECT_EQ(lowest.size(), 8U);
}

/// The factor that undoes a multiplication by an odd number (Newton).
constexpr std::uint64_t inverse(std::uint64_t odd) {
  std::uint64_t x = odd;
  for (int i = 0; i < 6; ++i) x *= 2 - odd * x;
  return x;
}

/// The keys for which mixed_hash() returns zero. They can be computed from the seed.
std::vector<std::size_t> colliding_keys(const detail::HashSeed& seed, std::size_t count) {
  std::vector<std::size_t> keys;
  for (std::uint64_t low = 0; keys.size() < count; ++low) {
    std::uint64_t x = low * inverse(seed.multiplier);
    x ^= x >> 33;
    x *= inverse(0x3c79ac492ba7b653);
    x ^= x >> 27 ^ x >> 54;
    x -= seed.added;
    if (x >> 62 == 0) keys.push_back(x << 2);
  }
  return keys;
}

TEST(KeyedHash, KeysThatCollideForOneTableDoNotForAnother) {
  if constexpr (sizeof(std::size_t) < 8) GTEST_SKIP() << "too few of the 2^30 inputs have one hash";
  constexpr std::size_t kKeys = 40'000;
  const std::vector<std::size_t> keys = colliding_keys(kSeed, kKeys);
  const auto hashes = [&](const detail::HashSeed& seed) {
    std::set<std::uint32_t> different;
    for (const std::size_t key : keys) different.insert(detail::mixed_hash(key, seed));
    return different.size();
  };
  EXPECT_EQ(hashes(kSeed), 1U) << "the keys do not collide";
  const detail::HashSeed seed = detail::HashSeed::random();
  const detail::HashSeed other = detail::HashSeed::random();
  EXPECT_NE(seed.added, other.added);
  EXPECT_NE(seed.multiplier, other.multiplier);
  EXPECT_EQ(seed.multiplier % 2, 1U);
  EXPECT_GT(hashes(seed), kKeys - 100);
  // Each of the two secrets is enough.
  EXPECT_GT(hashes({kSeed.added, seed.multiplier}), kKeys - 100);
  EXPECT_GT(hashes({seed.added, kSeed.multiplier}), kKeys / 2);
}

/// Its move constructor can be made to throw.
struct Fragile {
  explicit Fragile(int* moves_left) : moves_left(moves_left) {}
  Fragile(Fragile&& other) : moves_left(other.moves_left) {
    if (--*moves_left == 0) throw std::runtime_error("fragile");
  }
  int* moves_left;
};

TEST(KeyedErrors, AMoveConstructorThatThrowsLeavesNothingPending) {
  for (const bool for_good : {false, true}) {
    SCOPED_TRACE(for_good ? "for good" : "for a while");
    ManualTimer timer;
    int expired = 0;
    int moves_left = std::numeric_limits<int>::max();
    KeyedTimer<int, Fragile> keyed(timer, [&](const int&, Fragile&) { ++expired; });
    for (int key = 0; key < 100; ++key) (void)keyed.set(key, Fragile(&moves_left), 1s);
    moves_left = 3;
    EXPECT_THROW(for_good ? keyed.stop() : keyed.drain(), std::runtime_error);
    EXPECT_EQ(keyed.size(), 0U);
    EXPECT_EQ(timer.pending_timeouts(), 0);
    timer.advance(2s);
    EXPECT_EQ(expired, 0);
  }
}

TEST(KeyedWithoutAWorker, SetThrowsAndKeepsNothing) {
  HashedWheelTimer timer({.thread_factory = [](const std::function<void()>&) { return std::thread(); }});
  KeyedTimer<int, int> keyed(timer, [](int, int&) {});
  EXPECT_THROW((void)keyed.set(1, 10, 1h), IllegalState);
  EXPECT_FALSE(keyed.contains(1));
  EXPECT_EQ(keyed.size(), 0u);
  timer.stop();
  EXPECT_EQ(keyed.set(1, 10, 1h), KeyedResult::Stopped);
}

// --- on_expire inside another on_expire, of the same KeyedTimer or another ---

/// An executor that keeps its jobs lets a call run the next one. A KeyedTimer that goes away keeps its function until
/// the outermost call of it has returned.
class NestedExpiry : public ::testing::Test {
 protected:
  /// A KeyedTimer with one key, whose function calls `body`. Sets `alive` to a part of the function.
  std::unique_ptr<KeyedTimer<int, int>> make(std::weak_ptr<int>& alive, std::function<void()> body) {
    const auto part = std::make_shared<int>();
    alive = part;
    auto keyed = std::make_unique<KeyedTimer<int, int>>(timer_, [part, body](int, int&) { body(); });
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
  std::unique_ptr<KeyedTimer<int, int>> keyed;
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
  std::unique_ptr<KeyedTimer<int, int>> inner;
  const auto outer = make(outer_function, [&] {
    run_next();
    EXPECT_TRUE(inner_function.expired());
  });
  inner = make(inner_function, [&] {
    inner.reset();
    EXPECT_FALSE(inner_function.expired());
  });
  (void)inner->set(2, 2, 1ms);  // the job of this timeout keeps the rest of the KeyedTimer alive
  expire();
  run_next();
  EXPECT_EQ(inner, nullptr);
  EXPECT_FALSE(outer_function.expired());
}

TEST_F(NestedExpiry, ACallMayDestroyAnotherKeyedTimerWhoseFunctionGoesAtOnce) {
  std::weak_ptr<int> function;
  std::weak_ptr<int> other_function;
  auto other = make(other_function, [] { ADD_FAILURE() << "called although its timer had gone"; });
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
