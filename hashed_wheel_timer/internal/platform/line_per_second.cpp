#include "hashed_wheel_timer/internal/platform/line_per_second.h"

#include <cstdio>

namespace hwt::internal {

LinePerSecond::Turn LinePerSecond::take_turn() noexcept {
  constexpr std::int64_t kBetweenLines = std::chrono::steady_clock::duration(std::chrono::seconds(1)).count();
  const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
  std::int64_t next = next_line_at_.load(std::memory_order_relaxed);
  Turn turn;
  if (now < next || !next_line_at_.compare_exchange_strong(next, now + kBetweenLines, std::memory_order_relaxed)) {
    left_out_.fetch_add(1, std::memory_order_relaxed);
    return turn;
  }
  turn.granted_ = true;
  turn.left_out_ = left_out_.exchange(0, std::memory_order_relaxed);
  return turn;
}

std::array<char, 60> LinePerSecond::Turn::left_out() const noexcept {
  std::array<char, 60> text{};
  if (left_out_ != 0) std::snprintf(text.data(), text.size(), " (and %lld more since the last line)", left_out_);
  return text;
}

}  // namespace hwt::internal
