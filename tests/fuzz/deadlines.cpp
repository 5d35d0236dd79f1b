// Deadline: texts from the wire against reading them digit by digit, numbers against arithmetic, the order of two, and
// texts for the next hop.

#include <stdexcept>
#include <string_view>

#include "hashed_wheel_timer/deadline.h"
#include "tests/fuzz/targets.h"

namespace hwt::fuzz {

namespace {

using std::chrono::nanoseconds;

constexpr std::string_view kUnits = "numSMH";
constexpr std::uint64_t kNanoseconds[] = {1, 1'000, 1'000'000, 1'000'000'000, 60'000'000'000, 3'600'000'000'000};

TimePoint any_time(Input& input) { return TimePoint(nanoseconds(any_number(input))); }

/// Mostly digits and a unit. Reads one part of the input per statement, so that each compiler reads the same text.
std::string any_text(Input& input) {
  std::string text;
  const std::uint64_t digits = input.below(11);
  for (std::uint64_t i = 0; i < digits; ++i) text += static_cast<char>('0' + input.below(10));
  if (!input.one_in(8)) text += kUnits[input.below(kUnits.size())];
  for (std::uint64_t wrong = input.one_in(4) ? 1 + input.below(2) : 0; wrong != 0; --wrong) {
    const std::uint64_t at = input.below(text.size() + 1);
    text.insert(at, 1, input.number<char>());
  }
  if (input.one_in(32)) {
    const std::uint64_t at = input.below(text.size() + 1);
    const std::uint64_t times = input.below(200);
    text.insert(at, times, input.number<char>());
  }
  return text;
}

/// The end of the budget from `now` on: never, if the budget or its end is beyond the range of 64 signed bits.
Deadline deadline_after(TimePoint now, std::uint64_t number, std::uint64_t unit) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return number > kMost / unit || number * unit == kMost ? TimePoint::max() : later_by(now, number * unit);
}

std::optional<Deadline> read(std::string_view text, TimePoint now) {
  if (text.size() < 2 || text.size() > 9) return {};
  std::uint64_t number = 0;
  for (const char digit : text.substr(0, text.size() - 1)) {
    if (digit < '0' || digit > '9') return {};
    number = 10 * number + static_cast<std::uint64_t>(digit - '0');
  }
  const std::size_t unit = kUnits.find(text.back());
  if (unit == kUnits.npos) return {};
  return deadline_after(now, number, kNanoseconds[unit]);
}

void check_text(Input& input) {
  const TimePoint now = any_time(input);
  const std::string text = any_text(input);
  const std::optional<Deadline> expected = read(text, now);
  require(Deadline::try_from_grpc_timeout(text, now) == expected, "a text is read as it is written");
  try {
    require(Deadline::from_grpc_timeout(text, now) == expected, "with or without an exception");
  } catch (const std::invalid_argument& e) {
    require(!expected, "a good text is no error");
    const std::string_view message(e.what());
    require(message.size() < 150, "the message is short");
    require(std::none_of(message.begin(), message.end(), [](char c) { return c == '\n' || c == '\r' || c == '\0'; }),
            "the message is one line");
  }
}

/// The budget for the next hop is never longer, and hardly shorter.
void check_next_hop(Input& input) {
  const TimePoint now = any_time(input);
  const Deadline deadline = any_time(input);
  const std::string text = deadline.to_grpc_timeout(now);
  const std::int64_t milliseconds = deadline.to_milliseconds(now);
  if (deadline.is_never()) {
    require(text.empty() && milliseconds == -1, "a deadline that never comes is not written");
    require(Deadline::from_milliseconds(milliseconds, now).is_never(), "and is read again");
    return;
  }
  const std::uint64_t left = deadline.time() <= now ? 0 : distance(now, deadline);
  const std::uint64_t most = static_cast<std::uint64_t>((nanoseconds::max)().count());
  require_equal(deadline.remaining(now).count(), static_cast<std::int64_t>(std::min(left, most)), "remaining()");
  require(deadline.expired(now) == (left == 0), "expired()");
  const std::optional<Deadline> again = Deadline::try_from_grpc_timeout(text, now);
  require(again.has_value(), "what is written can be read");
  const std::uint64_t got = distance(now, *again);
  require(got <= left, "a text is never longer than the budget");
  require(std::min(left, most) - got <= std::min(left, most) / 100'000, "and at most a hundred-thousandth shorter");
  require_equal(milliseconds, static_cast<std::int64_t>(std::min(left, most) / 1'000'000), "to_milliseconds()");
}

void check_milliseconds(Input& input) {
  const TimePoint now = any_time(input);
  const auto number = input.one_in(2) ? input.number<std::int64_t>() : input.number<std::int16_t>();
  const Deadline expected =
      number < 0 ? Deadline::never() : deadline_after(now, static_cast<std::uint64_t>(number), 1'000'000);
  require(Deadline::from_milliseconds(number, now) == expected, "from_milliseconds()");
}

void check_order(Input& input) {
  const Deadline a = any_time(input);
  const Deadline b = any_time(input);
  const TimePoint now = any_time(input);
  require(min(a, b) == std::min(a.time(), b.time()), "min()");
  require(min(a, b).remaining(now) == std::min(a.remaining(now), b.remaining(now)), "remaining() of min()");
  require(min(a, b).expired(now) == (a.expired(now) || b.expired(now)), "expired() of min()");
}

}  // namespace

void deadlines(Input& input) {
  // Texts come twice as often, because they have the most forms.
  static constexpr void (*kChecks[])(Input&) = {check_text, check_text, check_next_hop, check_milliseconds,
                                                check_order};
  do {
    input.one_of(kChecks)(input);
  } while (!input.ended());
}

}  // namespace hwt::fuzz
