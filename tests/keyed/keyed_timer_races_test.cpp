// KeyedTimer against the worker and other threads: each value is counted, and has exactly one fate. No value expires
// early, or after a move has saved it.

#include "hashed_wheel_timer/keyed_timer.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using std::chrono::nanoseconds;

constexpr auto kHunt = 700ms;
constexpr int kThreads = 3;

/// What became of the values that went in.
struct Fates {
  std::atomic<std::int64_t> made = 0;
  std::atomic<std::int64_t> expired = 0;
  std::atomic<std::int64_t> taken = 0;    // by remove(), drain() and stop()
  std::atomic<std::int64_t> refused = 0;  // by set()
  std::atomic<std::int64_t> dropped = 0;  // destroyed without any of these: replaced, or left at the end
  std::atomic<std::int64_t> twice = 0;
};

/// A value that knows whether it has had its fate.
class Value {
 public:
  explicit Value(Fates& fates) : fates_(&fates) { ++fates.made; }
  Value(Value&& other) noexcept : fates_(std::exchange(other.fates_, nullptr)), ended_(other.ended_) {}
  Value& operator=(Value&&) = delete;
  ~Value() {
    if (fates_ != nullptr && !ended_) ++fates_->dropped;
  }
  void end(std::atomic<std::int64_t> Fates::* fate) {
    if (std::exchange(ended_, true)) ++fates_->twice;
    ++(fates_->*fate);
  }

 private:
  Fates* fates_;
  bool ended_ = false;
};

template <class Hash>
class KeyedRacesWith : public ::testing::Test {
 protected:
  using Keyed = KeyedTimer<int, Value, Hash>;

  ~KeyedRacesWith() override { destroy(); }

  void destroy() {
    delete keyed_;
    keyed_ = nullptr;
  }
  void set(int key, nanoseconds delay) {
    switch (keyed_->set(key, Value(fates_), delay)) {
      case KeyedResult::Added:
        break;
      case KeyedResult::Replaced:
        ++replaced_;
        break;
      default:
        ++fates_.refused;
    }
  }
  void remove(int key) {
    if (std::optional<Value> value = keyed_->remove(key)) value->end(&Fates::taken);
  }
  void take(std::vector<std::pair<int, Value>> items) {
    for (auto& item : items) item.second.end(&Fates::taken);
  }

  /// Calls f(random, thread) on several threads until kHunt is over.
  template <class F>
  void hunt(F f) {
    run_together(kThreads, [&](int thread) {
      std::minstd_rand random(static_cast<unsigned>(thread) + 1);
      for (const Deadline end(kHunt); !end.passed();) f(random);
    });
  }
  /// Calls set(), remove() or move() for a random key, with a delay of less than `below`.
  void call_one(std::minstd_rand& random, unsigned keys, nanoseconds below) {
    const int key = static_cast<int>(random() % keys);
    const nanoseconds delay = (random() % (below / 1us)) * 1us;
    switch (random() % 4) {
      case 0:
        remove(key);
        break;
      case 1:
        (void)keyed_->move(key, delay);
        break;
      default:
        set(key, delay);
    }
  }

  /// Every value that went in has come out, once. `left`: how many were destroyed with the KeyedTimer.
  void expect_one_fate_each(std::int64_t left = 0) {
    EXPECT_EQ(fates_.twice, 0);
    EXPECT_EQ(fates_.dropped, replaced_ + fates_.refused + left);
    EXPECT_EQ(fates_.made, fates_.expired + fates_.taken + fates_.dropped);
  }
  void wait_until_empty() {
    EXPECT_TRUE(eventually([&] { return keyed_->size() == 0; }));
  }

  Fates fates_;
  std::atomic<std::int64_t> replaced_ = 0;
  HashedWheelTimer timer_{1ms, 64};
  // Not a unique_ptr: an on_expire that is running may use it until the destructor returns.
  Keyed* keyed_ = new Keyed(timer_, [](const int&, Value& value) { value.end(&Fates::expired); });
};

using KeyedRaces = KeyedRacesWith<std::hash<int>>;

/// All keys have one lock, so that expiries seldom get it.
struct Alike {
  std::size_t operator()(int) const { return 0; }
};
using KeyedRacesForOneLock = KeyedRacesWith<Alike>;

TEST_F(KeyedRacesForOneLock, ExpiriesThatDoNotGetTheLock) {
  hunt([&](std::minstd_rand& random) {
    call_one(random, 64, 2ms);
    if (random() % 1024 == 0) take(keyed_->drain());
    EXPECT_LE(keyed_->size(), 65U);  // of 64 keys, and a value that is expiring
  });
  wait_until_empty();
  destroy();
  expect_one_fate_each();
  EXPECT_GT(fates_.expired, 0);
}

TEST_F(KeyedRaces, StopAgainstEverything) {
  run_together(kThreads, [&](int thread) {
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    for (int i = 0; i < 20'000; ++i) {
      set(static_cast<int>(random() % 200), (random() % 2000) * 1us);
      if (i % 16 == 0) remove(static_cast<int>(random() % 200));
      if (thread == 0 && i == 10'000) take(keyed_->stop());
    }
  });
  EXPECT_EQ(keyed_->size(), 0u);
  destroy();
  expect_one_fate_each();
  EXPECT_GT(fates_.refused, 0);
}

TEST_F(KeyedRaces, DestructionAgainstExpiry) {
  std::int64_t left = 0;
  std::minstd_rand random(1);
  for (const Deadline end(kHunt); !end.passed();) {
    const std::int64_t before = fates_.dropped;
    for (int i = 0; i < 300; ++i) set(i, (random() % 2000) * 1us);
    std::this_thread::sleep_for((random() % 2000) * 1us);
    destroy();
    left += fates_.dropped - before;  // no on_expire runs any more: this is all
    EXPECT_EQ(fates_.made, fates_.expired + fates_.dropped);
    keyed_ = new Keyed(timer_, [](const int&, Value& value) { value.end(&Fates::expired); });
  }
  destroy();
  expect_one_fate_each(left);
  EXPECT_GT(fates_.expired, 0);
  EXPECT_GT(left, 0);
}

TEST_F(KeyedRaces, TheTimerIsStoppedMeanwhile) {
  std::vector<Timeout> unprocessed;
  run_together(kThreads, [&](int thread) {
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    for (int i = 0; i < 20'000; ++i) {
      const int key = static_cast<int>(random() % 2000);
      if (i % 4 == 0) {
        const KeyedResult moved = keyed_->move(key, (random() % 5000) * 1us);
        EXPECT_TRUE(moved == KeyedResult::Moved || moved == KeyedResult::NotFound || moved == KeyedResult::Stopped);
      } else {
        set(key, (random() % 5000) * 1us);
      }
      if (thread == 0 && i == 10'000) unprocessed = timer_.stop();
    }
  });
  EXPECT_GT(fates_.refused, 0);
  const auto size = static_cast<std::int64_t>(keyed_->size());
  take(keyed_->drain());
  EXPECT_GE(fates_.taken, size) << "drain() returns the values that a stopped timer leaves";
  for (Timeout& timeout : unprocessed) timeout.task().run(timeout);
  destroy();
  expect_one_fate_each();
}

// Heartbeats: a value that move() has saved does not expire before its new deadline.
TEST(KeyedHeartbeats, TouchAgainstExpiry) {
  constexpr int kKeys = 64;
  constexpr auto kIdle = 3ms;
  // Each set() of a key begins a life of it, with the life's number as the value.
  struct Connection {
    std::atomic<int> life = 0;
    std::atomic<steady_clock::rep> moved = 0;  // just before the latest set() or successful move() of this life
    std::atomic<int> expired_life = 0;
  };
  std::array<Connection, kKeys> connections;
  std::atomic<int> early = 0;
  std::atomic<std::int64_t> saved = 0;
  std::atomic<std::int64_t> lives = 0;
  std::atomic<std::int64_t> expired = 0;
  const auto check = [&early, kIdle](steady_clock::rep moved) {
    if (steady_clock::now().time_since_epoch().count() - moved < nanoseconds(kIdle).count()) ++early;
  };
  HashedWheelTimer timer(1ms, 64);
  KeyedTimer<int, int> keyed(timer, [&](const int& key, int& life) {
    Connection& it = connections[static_cast<std::size_t>(key)];
    const auto moved = it.moved.load();
    if (it.life == life) check(moved);  // else the next life has begun meanwhile, and `moved` may be of that one
    it.expired_life = life;
    ++expired;
  });
  run_together(kThreads, [&](int thread) {
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    for (const Deadline end(kHunt); !end.passed();) {
      for (int key = thread; key < kKeys; key += kThreads) {  // a thread has keys of its own
        Connection& it = connections[static_cast<std::size_t>(key)];
        const auto now = steady_clock::now().time_since_epoch().count();
        if (keyed.move(key, kIdle) == KeyedResult::Moved) {
          it.moved = now;
          ++saved;
          if (it.expired_life == it.life) check(now);
        } else {
          const int life = ++it.life;
          it.moved = now;
          EXPECT_EQ(keyed.set(key, life, kIdle), KeyedResult::Added);
          ++lives;
        }
      }
      std::this_thread::sleep_for(kIdle - 1ms + (random() % 2500) * 1us);  // about when they expire
    }
  });
  EXPECT_TRUE(eventually([&] { return expired == lives; }));
  EXPECT_EQ(keyed.size(), 0u);
  EXPECT_EQ(early, 0);
  EXPECT_GT(saved, 0);
  EXPECT_GT(expired, 0);
}

// Everything at once, from many threads and from inside on_expire.
TEST_F(KeyedRaces, EverythingAtOnce) {
  std::atomic<bool> over = false;
  destroy();
  keyed_ = new Keyed(timer_, [&](const int& key, Value& value) {
    value.end(&Fates::expired);
    if (over) return;
    if (key % 3 == 0) set(key, 1ms);
    if (key % 5 == 0) (void)keyed_->move(key + 1, 2ms);
    if (key % 7 == 0) remove(key + 1);
    if (key == 11) take(keyed_->drain());
  });
  hunt([&](std::minstd_rand& random) {
    for (int i = 0; i < 100; ++i) call_one(random, 500, 4ms);
    if (random() % 64 == 0) take(keyed_->drain());
    EXPECT_LE(keyed_->size(), 501u);  // 500 keys, and one value that is expiring; see KeyedTimer::size()
    std::this_thread::sleep_for(200us);
  });
  over = true;
  wait_until_empty();
  take(keyed_->stop());  // an on_expire that has not seen `over` may set a value now
  destroy();
  expect_one_fate_each();
  for (const std::int64_t count : {fates_.expired.load(), fates_.taken.load(), replaced_.load()}) EXPECT_GT(count, 0);
  // The worker may have claimed the timeout of a value that is gone, and be about to count it.
  EXPECT_TRUE(eventually([&] { return timer_.pending_timeouts() == 0; }));
}

}  // namespace
}  // namespace hwt
