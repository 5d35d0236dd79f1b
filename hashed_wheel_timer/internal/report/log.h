// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

// Lines on stderr. warn() and die() write the prefix "hashed_wheel_timer: ". LinePerSecond, SlowTasks in
// engine/task_runner.cpp and the C interface write it themselves. No function here allocates memory of its own, because
// a line may report a lack of memory.

namespace hwt::internal {

/// Writes one line to stderr, in one write.
void warn(std::string_view message) noexcept;

/// Writes one line to stderr and ends the program, because what comes next would be undefined.
[[noreturn]] void die(std::string_view message) noexcept;

/// Returns the C++ exception that is being handled, for a catch block around code of the user. If it is none of C++,
/// ends the program with a line on stderr that names the `origin`. On Linux pthread_exit() and pthread_cancel() unwind
/// the thread by such an exception, which no catch block may end.
std::exception_ptr caught_exception(const char* origin) noexcept;

/// Calls f(text) with the text of an exception, a const char*, and returns its result.
template <class F>
decltype(auto) with_text_of(const std::exception_ptr& error, F&& f) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return std::forward<F>(f)(e.what());
  } catch (...) {
    return std::forward<F>(f)("not a std::exception");
  }
}

/// Allows one line a second, and counts the others. Any thread.
class LinePerSecond {
 public:
  /// Returns null if a line was written less than a second ago. Otherwise returns the end of the next line: empty, or
  /// how many lines were left out.
  std::optional<std::array<char, 60>> take_turn() noexcept;

  /// Writes the line of an exception, if one may be written now. The default for Options::on_task_error. `origin` names
  /// the function that threw: "a task".
  void report(const std::exception_ptr& error, const char* origin) noexcept;

 private:
  // relaxed: they order nothing but themselves.
  std::atomic<std::int64_t> next_line_at_{(std::chrono::steady_clock::time_point::min)().time_since_epoch().count()};
  std::atomic<std::int64_t> left_out_{0};
};

/// Counts a live timer of a kind that has a thread. Warns once per process when there are more than 64, the limit of
/// Netty (INSTANCE_COUNT_LIMIT).
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
