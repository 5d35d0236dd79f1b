// The rules of calendar.h against the system's localtime, in every zone that it has, from 1970 to 2037; and which
// arguments they refuse.

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "hashed_wheel_timer/calendar.h"
#include "tests/fuzz/targets.h"
#include "tests/support/localtime_zone.h"

namespace hwt::fuzz {

using calendar::Fold;
using calendar::Gap;
using calendar::MonthEnd;
using calendar::Rule;
using std::chrono::days;
using std::chrono::floor;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::year_month_day;
using Zone = test::LocaltimeZone;

namespace {

bool is_zone(const std::filesystem::path& file) {
  char begin[4] = {};
  std::ifstream(file, std::ios::binary).read(begin, sizeof begin);
  return std::string(begin, sizeof begin) == "TZif";
}

/// Those of the system that the library can name. Not those that count leap seconds, which POSIX's time does not.
std::vector<std::string> zone_names() {
  namespace fs = std::filesystem;
  const fs::path folder = "/usr/share/zoneinfo";
  std::vector<std::string> names = {"UTC"};
  std::error_code none;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, none)) {
    const std::string name = entry.path().lexically_relative(folder).generic_string();
    if (name.rfind("right/", 0) == 0 || !entry.is_regular_file() || !is_zone(entry.path())) continue;
    try {
      calendar::daily(seconds(0), {name});
      names.push_back(name);
    } catch (const std::invalid_argument&) {
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

struct Named {
  std::string name;
  std::unique_ptr<Zone> zone;  // made when it is first used
};

const Named& any_zone(Input& input) {
  static std::vector<Named> zones = [] {
    std::vector<Named> all;
    for (const std::string& name : zone_names()) all.push_back({name, nullptr});
    return all;
  }();
  Named& named = zones[input.number<std::uint16_t>() % zones.size()];
  if (named.zone == nullptr) named.zone = std::make_unique<Zone>(named.name);
  return named;
}

/// A rule, and its meaning.
struct Meaning {
  enum class Kind { Daily, Weekly, Monthly, Yearly } kind;
  seconds time_of_day;
  unsigned day;
  unsigned month;
  MonthEnd month_end;
  Gap gap;
  Fold fold;

  bool is_valid() const {
    if (time_of_day < seconds(0) || time_of_day >= days(1)) return false;
    switch (kind) {
      case Kind::Daily:
        return true;
      case Kind::Weekly:
        return day <= 7;
      case Kind::Monthly:
        return day >= 1 && day <= 31;
      case Kind::Yearly:
        break;
    }
    static constexpr unsigned kLongest[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month >= 1 && month <= 12 && day >= 1 && day <= kLongest[month - 1];
  }

  Rule rule(const std::string& zone) const {
    switch (kind) {
      case Kind::Daily:
        return calendar::daily(time_of_day, {zone}, gap, fold);
      case Kind::Weekly:
        return calendar::weekly(std::chrono::weekday(day), time_of_day, {zone}, gap, fold);
      case Kind::Monthly:
        return calendar::monthly(day, time_of_day, {zone}, month_end, gap, fold);
      case Kind::Yearly:
        break;
    }
    return calendar::yearly(std::chrono::month(month) / std::chrono::day(day), time_of_day, {zone}, month_end, gap,
                            fold);
  }

  bool wants(sys_days local_day) const {
    const year_month_day date(local_day);
    switch (kind) {
      case Kind::Daily:
        return true;
      case Kind::Weekly:
        return (local_day.time_since_epoch().count() + 4) % 7 == day % 7;  // the first one was a Thursday
      case Kind::Monthly:
        break;
      case Kind::Yearly:
        if (static_cast<unsigned>(date.month()) != month) return false;
    }
    const auto this_day = static_cast<unsigned>(date.day());
    if (this_day == day) return true;
    const auto last_day = static_cast<unsigned>((date.year() / date.month() / std::chrono::last).day());
    return month_end == MonthEnd::Clamp && this_day == last_day && day > last_day;
  }

  /// Zone::kEnd: none before it.
  WallTime first_after(WallTime after, const Zone& zone) const {
    WallTime found = Zone::kEnd;
    // Begins two days before, for a local day that the zone left out. Goes on for two days after the first find,
    // because moments may not have the order of their days.
    sys_days last = floor<days>(Zone::kEnd);
    for (sys_days day = zone.local_day(after) - days(2); day <= last; day += days(1)) {
      if (!wants(day)) continue;
      for (const WallTime moment : zone.moments_of(day + time_of_day, gap, fold)) {
        if (moment > after && moment < found) {
          found = moment;
          last = std::min(last, day + days(2));
        }
      }
    }
    return found;
  }
};

}  // namespace

void calendars(Input& input) {
  const Named& named = any_zone(input);
  WallTime time = Zone::kBegin + days(3) +
                  seconds(input.number<std::uint32_t>() % seconds(Zone::kEnd - Zone::kBegin - days(6)).count());
  Meaning meaning{};
  meaning.kind =
      input.one_of({Meaning::Kind::Daily, Meaning::Kind::Weekly, Meaning::Kind::Monthly, Meaning::Kind::Yearly});
  // Clocks change at full quarters, most of them in the first hours of a day.
  if (input.one_in(8)) {
    meaning.time_of_day = seconds(input.number<std::int32_t>());
  } else {
    meaning.time_of_day = std::chrono::minutes(15 * input.up_to(99));
    meaning.time_of_day += seconds(input.up_to(2) - 1);
  }
  meaning.day = static_cast<unsigned>(input.below(34));
  meaning.month = static_cast<unsigned>(input.below(14));
  meaning.month_end = input.one_of({MonthEnd::Clamp, MonthEnd::Skip});
  meaning.gap = input.one_of({Gap::ShiftForward, Gap::Skip});
  meaning.fold = input.one_of({Fold::First, Fold::Second, Fold::Both});

  Rule rule;
  try {
    rule = meaning.rule(named.name);
  } catch (const std::invalid_argument&) {
  }
  require((rule != nullptr) == meaning.is_valid(), "refused exactly what is not valid");
  if (rule == nullptr) return;
  for (auto more = 1 + input.below(8); more > 0; --more) {
    const WallTime expected = meaning.first_after(time, *named.zone);
    const WallTime found = rule(time).value_or(Zone::kEnd);
    if (expected == Zone::kEnd && found >= Zone::kEnd - days(2)) return;
    if (found != expected)
      std::fprintf(stderr, "in %s, after %lld\n", named.name.c_str(),
                   static_cast<long long>(time.time_since_epoch().count()));
    require_equal(found.time_since_epoch().count(), expected.time_since_epoch().count(), "the next occurrence");
    time = found;
  }
}

}  // namespace hwt::fuzz
