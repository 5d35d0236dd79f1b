// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace hwt {

/// Names one timeout of one timer: a plain number of 8 bytes, for programs that keep ids instead of handles.
///
///   hwt::TimeoutId id = timer.add([request] { fail(request); }, 250ms);
///   if (timer.cancel(id) == hwt::CancelResult::Cancelled) deliver_answer(request);
///
/// Guarantees: an id never names a second timeout, so a stale one is harmless, however old it is. An id of one timer is
/// Gone for every other timer.
/// Threads: a value like any integer.
/// Not for: ownership. An id keeps nothing alive and cancels nothing when it is destroyed.
class TimeoutId {
 public:
  /// Makes an id that names no timeout. Its value is 0.
  constexpr TimeoutId() noexcept = default;
  /// Makes the id with this value, for programs that store ids as integers. Any value is allowed.
  static constexpr TimeoutId from_value(std::uint64_t value) noexcept { return TimeoutId(value); }
  /// Returns the id as an integer; 0 if it names no timeout.
  constexpr std::uint64_t value() const noexcept { return value_; }
  /// Returns whether the value is not 0. Says nothing about the state of the timeout.
  constexpr explicit operator bool() const noexcept { return value_ != 0; }
  /// Compares the values. The order is arbitrary.
  friend constexpr auto operator<=>(TimeoutId, TimeoutId) noexcept = default;

 private:
  constexpr explicit TimeoutId(std::uint64_t value) noexcept : value_(value) {}

  std::uint64_t value_ = 0;
};

/// The outcome of Timer::cancel() and Timer::cancel_and_wait(). It orders memory, as the comments say.
enum class CancelResult : std::uint8_t {
  /// This call cancelled it: the task has not run and never will.
  Cancelled,
  /// The task runs now, on any thread, or an executor has it. The caller sees everything that the tasks before it on
  /// the worker wrote, but perhaps not all that this task has written so far.
  Running,
  /// The timeout has run, was cancelled or returned by stop() before, or the id names no timeout of this timer. If the
  /// task has run, the caller sees everything that it wrote.
  Gone,
};

}  // namespace hwt

/// Equal ids have equal hashes, so ids may be keys of unordered containers.
template <>
struct std::hash<hwt::TimeoutId> {
  /// Returns the hash.
  std::size_t operator()(hwt::TimeoutId id) const noexcept { return std::hash<std::uint64_t>()(id.value()); }
};
