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
  std::atomic<std::int64_t> made = 0, expired = 0;
  std::atomic<std::int64_t> taken = 0;    // by remove(), drain() and stop()
  std::atomic<std::int64_t> refused = 0;  // by set()
  std::atomic<std::int64_t> dropped = 0;  // destroyed without a call of end(): replaced, refused, or left at the end
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

  /// Calls f(random) on several threads until kHunt is over. Each thread has random numbers of its own.
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

  /// Every value that went in has come out, once.
  void expect_one_fate_each() {
    EXPECT_EQ(fates_.twice, 0);
    EXPECT_EQ(fates_.dropped, replaced_ + fates_.refused);
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

class KeyedStop : public KeyedRaces, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(OfTheTimer, KeyedStop, testing::Bool());

TEST_P(KeyedStop, AgainstEverything) {
  std::vector<Timeout> unprocessed;
  run_together(kThreads, [&](int thread) {
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    for (int i = 0; i < 20'000; ++i) {
      call_one(random, 200, 2ms);
      if (thread != 0 || i != 10'000) continue;
      GetParam() ? void(unprocessed = timer_.stop()) : take(keyed_->stop());
    }
  });
  const auto size = static_cast<std::int64_t>(keyed_->size());
  EXPECT_TRUE(GetParam() || size == 0);
  const std::int64_t taken = fates_.taken;
  take(keyed_->drain());
  EXPECT_EQ(fates_.taken, taken + size) << "drain() returns the values that a stopped timer leaves";
  for (Timeout& timeout : unprocessed) timeout.task().run(timeout);
  destroy();
  expect_one_fate_each();
  EXPECT_GT(fates_.refused, 0);
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
  EXPECT_TRUE(none_pending(timer_));
}

}  // namespace
}  // namespace hwt
