// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/deadline.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "hashed_wheel_timer/detail/refuse_nan.h"
#include "hashed_wheel_timer/internal/report/refuse.h"
#include "hashed_wheel_timer/when.h"

namespace hwt {

using std::chrono::nanoseconds;

namespace {

constexpr std::size_t kMostDigits = 8;
constexpr std::int64_t kMostNumber = 99'999'999;

struct Unit {
  char letter;
  std::int64_t nanoseconds;
};
constexpr std::array<Unit, 6> kUnits = {
    {{'n', 1}, {'u', 1'000}, {'m', 1'000'000}, {'S', 1'000'000'000}, {'M', 60'000'000'000}, {'H', 3'600'000'000'000}}};

/// A sum or product beyond the range of the clock never comes.
Deadline after(Deadline::time_point now, std::int64_t number, std::int64_t unit) noexcept {
  if (number > (nanoseconds::max)().count() / unit) return Deadline::never();
  const When when(nanoseconds(number * unit));
  return Deadline::time_point(nanoseconds(when.deadline([&] { return nanoseconds(now.time_since_epoch()).count(); })));
}

}  // namespace

Deadline Deadline::in(Delay budget, detail::PresentTime now) {
  return after(now, std::max<std::int64_t>(detail::number("Deadline: budget", budget).count(), 0), 1);
}

std::optional<Deadline> Deadline::try_from_grpc_timeout(std::string_view text, detail::PresentTime now) noexcept {
  if (text.size() < 2 || text.size() > kMostDigits + 1) return {};
  const char* const end = text.data() + text.size() - 1;
  const auto unit = std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& each) { return each.letter == *end; });
  // Unsigned, so that a sign is no digit.
  std::uint32_t number = 0;
  const std::from_chars_result read = std::from_chars(text.data(), end, number);
  if (unit == kUnits.end() || read.ec != std::errc() || read.ptr != end) return {};
  return after(now, number, unit->nanoseconds);
}

Deadline Deadline::from_grpc_timeout(std::string_view text, detail::PresentTime now) {
  if (const std::optional<Deadline> deadline = try_from_grpc_timeout(text, now)) return *deadline;
  // The text comes from a peer, so it may be long and hold anything.
  const std::string shown(text.substr(0, 40));
  internal::refuse("Deadline: grpc-timeout", '"' + shown + (shown.size() < text.size() ? "...\"" : "\""),
                   "1 to 8 digits and one of H, M, S, m, u, n");
}

std::string Deadline::to_grpc_timeout(detail::PresentTime now) const {
  if (is_never()) return {};
  const std::int64_t left = remaining(now).count();
  const auto fits = [&](const Unit& unit) { return left / unit.nanoseconds <= kMostNumber; };
  const Unit& unit = *std::find_if(kUnits.begin(), kUnits.end(), fits);  // hours always fit
  return std::to_string(left / unit.nanoseconds) + unit.letter;
}

Deadline Deadline::from_milliseconds(std::int64_t budget, detail::PresentTime now) noexcept {
  return budget < 0 ? never() : after(now, budget, 1'000'000);
}

std::int64_t Deadline::to_milliseconds(detail::PresentTime now) const noexcept {
  return is_never() ? -1 : remaining(now).count() / 1'000'000;
}

}  // namespace hwt
