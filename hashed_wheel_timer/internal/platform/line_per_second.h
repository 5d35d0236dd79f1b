#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace hwt::internal {

/// Lets one line per second go to stderr, and counts those it leaves out. Any thread.
class LinePerSecond {
 public:
  /// Whether a line may be written now.
  class Turn {
   public:
    explicit operator bool() const noexcept { return granted_; }
    /// What the line ends with: nothing, or how many there were more. Of the text of a line no memory is asked for: it
    /// may be the lack of it that is to be told.
    std::array<char, 60> left_out() const noexcept;

   private:
    friend class LinePerSecond;
    bool granted_ = false;
    long long left_out_ = 0;
  };

  Turn take_turn() noexcept;

 private:
  // relaxed: they order nothing but themselves.
  std::atomic<std::int64_t> next_line_at_{(std::chrono::steady_clock::time_point::min)().time_since_epoch().count()};
  std::atomic<std::int64_t> left_out_{0};
};

}  // namespace hwt::internal
