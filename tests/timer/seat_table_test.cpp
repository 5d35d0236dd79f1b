// SeatTable: how a thread finds its own part of each timer, and the fate of that part when timers are destroyed.

#include <random>

#include "hashed_wheel_timer/internal/handover/seat.h"
#include "tests/support/any_timer.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using internal::FreeSeats;
using internal::Seat;
using internal::SeatTable;

/// The free seats of some cores, and one seat of each with a thread.
class Cores {
 public:
  explicit Cores(std::size_t count) : seats_(count) {
    for (FreeSeats*& seats : seats_) seats = new FreeSeats;
  }
  ~Cores() {
    for (FreeSeats* seats : seats_) {
      if (seats != nullptr) seats->close();
    }
  }
  Seat* seat(std::size_t index, std::uint64_t core_id) { return seats_[index]->add(nullptr, core_id); }
  void close(std::size_t index) { std::exchange(seats_[index], nullptr)->close(); }

 private:
  std::vector<FreeSeats*> seats_;
};

TEST(SeatTable, FindsEachSeatByTheIdOfItsCore) {
  EXPECT_EQ(SeatTable().find(1), nullptr);
  // Consecutive ids, as cores have them; those of every 4096th core; any; and those that hash to even numbers.
  for (const std::uint64_t step : {1ULL, 4096ULL, 0x9E37'79B9'7F4A'7C15ULL, 0x326E'E67A'0000'0000ULL}) {
    constexpr std::size_t kCores = 1024;  // then half of the table is full
    Cores cores(kCores);
    SeatTable table;
    std::vector<Seat*> seats;
    for (std::size_t i = 0; i < kCores; ++i) {
      ASSERT_TRUE(table.reserve());
      seats.push_back(cores.seat(i, (i + 1) * step));
      table.add(seats.back());
    }
    for (std::size_t i = 0; i < kCores; ++i) EXPECT_EQ(table.find((i + 1) * step), seats[i]);
    EXPECT_EQ(table.find((kCores + 1) * step), nullptr);
  }
}

TEST(SeatTable, GivesSeatsOfCoresThatHaveGoneBackWhenItIsFull) {
  constexpr std::size_t kCores = 1000;
  Cores cores(kCores);
  SeatTable table;
  ASSERT_TRUE(table.reserve());
  Seat* const first = cores.seat(0, 1);
  table.add(first);
  for (std::size_t i = 1; i < kCores; ++i) {
    ASSERT_TRUE(table.reserve());
    table.add(cores.seat(i, i + 1));
    cores.close(i);
    EXPECT_EQ(table.find(1), first);
  }
  std::size_t left = 0;
  for (std::size_t i = 0; i < kCores; ++i) left += table.find(i + 1) != nullptr ? 1 : 0;
  EXPECT_LE(left, 4u) << "of one core that is there and 999 that are gone";
}

/// Each thread schedules on timers in random order, and some of them are destroyed meanwhile. A thread that used the
/// part of another timer would corrupt it, or count there.
TEST(SeatTable, AThreadUsesManyTimersInAnyOrder) {
  constexpr int kThreads = 3;
  constexpr std::size_t kTimers = 50;
  std::array<std::vector<std::unique_ptr<ManualTimer>>, kThreads> own;
  std::vector<std::unique_ptr<ManualTimer>> shared;
  for (std::size_t i = 0; i < kTimers; ++i) shared.push_back(std::make_unique<ManualTimer>());
  std::array<std::array<std::int64_t, kTimers>, kThreads> scheduled{};
  run_together(kThreads, [&](int thread) {
    std::mt19937 random(static_cast<std::uint32_t>(thread));
    auto& timers = own[static_cast<std::size_t>(thread)];
    auto& counts = scheduled[static_cast<std::size_t>(thread)];
    for (int i = 0; i < 20'000; ++i) {
      const std::size_t at = random() % kTimers;
      shared[at]->new_timeout([] {}, 1s);
      ++counts[at];
      if (timers.size() < kTimers) timers.push_back(std::make_unique<ManualTimer>());
      std::unique_ptr<ManualTimer>& one = timers[random() % timers.size()];
      EXPECT_TRUE(one->new_timeout([] {}, 1s).cancel());
      if (random() % 4 == 0) one = std::make_unique<ManualTimer>();
    }
  });
  for (std::size_t i = 0; i < kTimers; ++i) {
    std::int64_t expected = 0;
    for (const auto& counts : scheduled) expected += counts[i];
    EXPECT_EQ(shared[i]->pending_timeouts(), expected);
    EXPECT_EQ(shared[i]->stats().scheduled, expected);
  }
}

}  // namespace
}  // namespace hwt
