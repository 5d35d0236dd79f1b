// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/report/log.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "hashed_wheel_timer/internal/report/refuse.h"

namespace hwt::internal {

void warn(std::string_view message) noexcept {
  std::fprintf(stderr, "hashed_wheel_timer: %.*s\n", static_cast<int>(message.size()), message.data());
}

void die(std::string_view message) noexcept {
  warn(message);
  std::abort();
}

std::exception_ptr caught_exception(const char* origin) noexcept {
  if (std::exception_ptr error = std::current_exception()) return error;
  std::array<char, 200> line{};
  std::snprintf(line.data(), line.size(),
                "%s was ended by pthread_exit(), pthread_cancel() or a foreign exception (expected: it returns or "
                "throws a C++ exception)",
                origin);
  die(line.data());
}

std::optional<std::array<char, 60>> LinePerSecond::take_turn() noexcept {
  constexpr std::int64_t kBetweenLines = std::chrono::steady_clock::duration(std::chrono::seconds(1)).count();
  const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
  std::int64_t next = next_line_at_.load(std::memory_order_relaxed);
  if (now < next || !next_line_at_.compare_exchange_strong(next, now + kBetweenLines, std::memory_order_relaxed)) {
    left_out_.fetch_add(1, std::memory_order_relaxed);
    return std::nullopt;
  }
  std::array<char, 60> end{};
  const long long left_out = left_out_.exchange(0, std::memory_order_relaxed);
  if (left_out != 0) std::snprintf(end.data(), end.size(), " (and %lld more since the last line)", left_out);
  return end;
}

void LinePerSecond::report(const std::exception_ptr& error, const char* origin) noexcept {
  const auto end = take_turn();
  if (!end) return;
  with_text_of(error, [&](const char* text) {
    std::array<char, 500> what{};  // no allocation: this may report the lack of memory
    std::snprintf(what.data(), what.size(), "%s", text);
    make_one_line({what.data(), std::strlen(what.data())});
    std::fprintf(stderr, "hashed_wheel_timer: an exception was thrown by %s: %s%s\n", origin, what.data(), end->data());
  });
}

namespace {

constexpr int kMaxInstances = 64;

// Counters only: nothing else is published through them.
std::atomic<int> live_instances{0};
std::atomic<bool> warned_of_instances{false};

}  // namespace

LiveInstance::LiveInstance() noexcept {
  if (live_instances.fetch_add(1, std::memory_order_relaxed) >= kMaxInstances &&
      !warned_of_instances.exchange(true, std::memory_order_relaxed)) {
    warn(
        "more than 64 timers are alive at once. A timer has a thread of its own and is made to be shared: "
        "use a few per process.");
  }
}

void LiveInstance::release() noexcept {
  if (counted_.exchange(false, std::memory_order_relaxed)) live_instances.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace hwt::internal
