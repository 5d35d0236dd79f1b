// Tests that await_change() returns after every change, at whatever moment it comes. A failing test hangs.

#include "hashed_wheel_timer/internal/platform/waiting.h"

#include <atomic>
#include <cstdint>
#include <thread>

#include "gtest/gtest.h"
#include "tests/support/build_kind.h"

namespace hwt::internal {
namespace {

/// Two threads take turns and wait for each other, so that changes come at all moments of a wait.
template <class Word>
void take_turns() {
  const int rounds = test::kSanitized ? 1'000 : 5'000;
  std::atomic<Word> turn{0};
  const auto play = [&](Word own) {
    for (int round = 0; round < rounds; ++round) {
      while (turn.load(std::memory_order_relaxed) != own) await_change(turn, static_cast<Word>(own ^ 1));
      turn.store(own ^ 1, std::memory_order_relaxed);
      announce_change(turn);
    }
  };
  std::jthread other(play, 1);
  play(0);
}

TEST(Waiting, NoChangeOfFourBytesIsMissed) { take_turns<std::uint32_t>(); }
TEST(Waiting, NoChangeOfEightBytesIsMissed) { take_turns<std::uint64_t>(); }

TEST(Waiting, AChangedValueIsNotAwaited) {
  const std::atomic<std::uint32_t> word{1};
  await_change(word, 0U);
}

}  // namespace
}  // namespace hwt::internal
