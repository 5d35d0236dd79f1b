#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <span>
#include <string_view>

namespace hwt::internal {

/// Makes one line of a text: control characters become question marks.
void make_one_line(std::span<char> text) noexcept;

/// One line on stderr, in one write.
void warn(std::string_view message) noexcept;

/// The default for Options::on_task_error: at most one line per second, which counts those it left out. Any thread.
class TaskErrorLog {
 public:
  void report(const std::exception_ptr& error) noexcept;

 private:
  std::atomic<std::int64_t> next_line_at_{std::chrono::steady_clock::time_point::min().time_since_epoch().count()};
  std::atomic<std::int64_t> left_out_{0};
};

/// Counts a live timer, and warns once per process when there are more than 64. Netty: INSTANCE_COUNT_LIMIT.
class LiveInstance {
 public:
  LiveInstance() noexcept;
  ~LiveInstance() { release(); }
  LiveInstance(const LiveInstance&) = delete;
  LiveInstance& operator=(const LiveInstance&) = delete;
  void release() noexcept;

 private:
  std::atomic<bool> counted_{true};
};

}  // namespace hwt::internal
