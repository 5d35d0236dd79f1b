#pragma once

// For tests of memory that goes back to the system.

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/engine/worker_thread.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/memory/slab.h"
#include "hashed_wheel_timer/internal/platform/pages.h"
#include "hashed_wheel_timer/internal/wheel/hashed_wheel.h"
#include "hashed_wheel_timer/threaded_timer.h"
#include "tests/support/test_support.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace hwt::test {

inline constexpr int kPeak = kSanitized || kCounting ? 40'000 : 300'000;
/// The most nodes that a pool keeps for its owner (docs/design.md, "Memory"), and a batch more.
inline constexpr std::size_t kKeptByPool = 2304 + 256;
/// A MiB in pages. The Collector does not begin for less.
inline constexpr std::size_t kNotWorthIt = 256;

/// A HashedWheelTimer that gives memory back after it was unused for `unused_for`.
class HastyTimer final : public ThreadedTimer {
 public:
  explicit HastyTimer(std::chrono::nanoseconds unused_for, std::int64_t wheel_size = 512) {
    const Options options{.tick_duration = 1ms};
    set_engine(new internal::WorkerThread<internal::HashedWheel>(*this, options, wheel_size, unused_for.count()));
  }
  ~HastyTimer() override { end(); }
};

inline void pass_seconds(ManualTimer& timer, int seconds) {
  for (int i = 0; i < 5 * seconds; ++i) timer.advance(200ms);
}

/// The slabs of some timeouts' nodes, and how much of them is in memory.
class Slabs {
 public:
  void add(const Timeout& timeout) {
    slabs_.insert(reinterpret_cast<std::uintptr_t>(internal::Node::of(timeout)) & ~(internal::Slab::kBytes - 1));
  }
  std::size_t size() const { return slabs_.size(); }
  std::size_t pages() const { return size() * kPagesPerSlab; }
  std::size_t resident_pages() const {
    std::size_t resident = 0;
#if defined(__linux__)
    for (const std::uintptr_t slab : slabs_) {
      unsigned char in_memory[kPagesPerSlab] = {};
      EXPECT_EQ(mincore(reinterpret_cast<void*>(slab), internal::Slab::kBytes, in_memory), 0);
      for (const unsigned char page : in_memory) resident += page & 1;
    }
#endif
    return resident;
  }

 private:
  static constexpr std::size_t kPagesPerSlab = internal::Slab::kMaxPages;
  std::set<std::uintptr_t> slabs_;
};

class AfterAPeak : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__linux__)
    if (internal::pages::size() != internal::Slab::kBytes / internal::Slab::kMaxPages)
      GTEST_SKIP() << "for pages of 4 KiB";
#else
    GTEST_SKIP() << "asks Linux what is in memory";
#endif
  }

  std::vector<Timeout> schedule(Timer& timer, int count, std::chrono::nanoseconds delay = kFar) {
    std::vector<Timeout> timeouts;
    timeouts.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      timeouts.push_back(timer.new_timeout([this] { ++ran_; }, delay));
      slabs_.add(timeouts.back());
    }
    core_ = &internal::Node::of(timeouts.back())->core();
    return timeouts;
  }
  static void cancel(std::vector<Timeout>& timeouts) {
    for (Timeout& timeout : timeouts) EXPECT_TRUE(timeout.cancel());
    timeouts.clear();
  }
  /// Cancels the timeouts, except one of every `each`. Returns those.
  static std::vector<Timeout> cancel_but_one_of(std::size_t each, std::vector<Timeout>& timeouts) {
    std::vector<Timeout> gone;
    std::vector<Timeout> left;
    for (std::size_t i = 0; i < timeouts.size(); ++i) (i % each == 0 ? left : gone).push_back(std::move(timeouts[i]));
    timeouts.clear();
    cancel(gone);
    return left;
  }
  /// The pages that may stay, if the nodes that the pool keeps lie in a row.
  std::size_t little() const { return slabs_.pages() / 10 + kNotWorthIt; }
  /// The pages that may stay if the freed nodes lie in a row. A pool keeps the nodes of some 40 pages, and the first
  /// page of a slab stays while another page of the slab does. The bound is generous: half a page for each slab.
  std::size_t very_little() const { return std::max<std::size_t>(slabs_.size() / 2, 64); }
  /// Waits until the worker of `timer`, the latest of schedule(), has slept for `time`. come_to_rest() does not notice
  /// a collection: the worker neither wakes up nor begins a tick then.
  void await_sleep(const Timer& timer, std::chrono::milliseconds time) {
    EXPECT_TRUE(eventually([&] {
      if (core_->sleeper().awake()) return false;
      const std::int64_t before = timer.stats().wakeups;
      std::this_thread::sleep_for(time);
      return !core_->sleeper().awake() && timer.stats().wakeups == before;
    })) << "the worker does not sleep";
  }
  testing::AssertionResult falls_to(std::size_t pages) {
    const bool fallen = eventually([&] {
      std::this_thread::sleep_for(5ms);  // asking is slow
      return slabs_.resident_pages() <= pages;
    });
    if (fallen) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << slabs_.resident_pages() << " of " << slabs_.pages() << " pages are still "
                                         << "in memory, not " << pages;
  }

  std::atomic<int> ran_ = 0;
  Slabs slabs_;
  internal::Core* core_ = nullptr;  // of the timer of the latest schedule()
};

}  // namespace hwt::test
