// The pair of fences that keeps a sleeping worker from missing a timeout: of two threads that store, fence and load,
// one at least sees the other's store.

#include "hashed_wheel_timer/internal/asymmetric_fence.h"

#include <random>

#include "test_support.h"

namespace hwt::internal {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

/// Lets two threads meet again and again, as close together as the machine can.
class Meeting {
 public:
  /// False when the hunt is over.
  bool come(int round) {
    arrived_.fetch_add(1);
    for (int spins = 0; arrived_.load() < 2 * round; ++spins) {
      if (over_.load()) return false;
      if (spins > 1000) std::this_thread::yield();
    }
    return !over_.load();
  }
  void end() { over_ = true; }

 private:
  std::atomic<int> arrived_ = 0;
  std::atomic<bool> over_ = false;
};

struct Counts {
  int rounds = 0;
  int both_blind = 0;
  int both_saw = 0;
};

/// Store, then load, on both sides.
Counts hunt(std::chrono::milliseconds duration) {
  struct alignas(64) Line {
    std::atomic<int> value = 0;
  };
  Line announcement;  // the worker's
  Line queue;         // a producer's
  Line seen_by_producer;
  Meeting meeting;
  Counts counts;
  const auto end = steady_clock::now() + duration;

  std::jthread producer([&] {
    std::minstd_rand random(1);
    for (int round = 1; meeting.come(2 * round - 1); ++round) {
      for (auto spin = random() % 64; spin > 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
      queue.value.store(round, std::memory_order_relaxed);
      AsymmetricFence::light();
      seen_by_producer.value = announcement.value.load(std::memory_order_relaxed);
      if (!meeting.come(2 * round)) return;
    }
  });
  std::minstd_rand random(2);
  for (int round = 1; meeting.come(2 * round - 1); ++round) {
    for (auto spin = random() % 64; spin > 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
    announcement.value.store(round, std::memory_order_relaxed);
    AsymmetricFence::heavy();
    const int seen_by_worker = queue.value.load(std::memory_order_relaxed);
    if (!meeting.come(2 * round)) break;
    ++counts.rounds;
    const bool worker_saw = seen_by_worker == round;
    const bool producer_saw = seen_by_producer.value == round;
    counts.both_blind += !worker_saw && !producer_saw ? 1 : 0;
    counts.both_saw += worker_saw && producer_saw ? 1 : 0;
    if (steady_clock::now() >= end) meeting.end();
  }
  return counts;
}

/// Before prepare(), and wherever the system cannot help: two full fences.
TEST(AsymmetricFence, OneSideSeesTheOtherWithFullFences) {
  const Counts counts = hunt(500ms);
  EXPECT_GT(counts.rounds, 100);
  EXPECT_EQ(counts.both_blind, 0) << "of " << counts.rounds << " rounds";
}

TEST(AsymmetricFence, OneSideSeesTheOtherOncePrepared) {
  AsymmetricFence::prepare();
  AsymmetricFence::prepare();  // each timer does
  const Counts counts = hunt(1000ms);
  EXPECT_GT(counts.rounds, 100);
  EXPECT_EQ(counts.both_blind, 0) << "of " << counts.rounds << " rounds";
}

}  // namespace
}  // namespace hwt::internal
