// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/recurring/time_zone.h"

#include <stdexcept>

#include "hashed_wheel_timer/internal/report/refuse.h"

// Defined by the build where <chrono> has no time zones.
#ifdef HWT_DATE_LIBRARY
#include <date/tz.h>
namespace tz = date;
#else
namespace tz = std::chrono;
#endif

namespace hwt::internal {

namespace {

const tz::time_zone& zone_of(const void* zone) { return *static_cast<const tz::time_zone*>(zone); }

const tz::time_zone* find(const std::string& name) {
  (void)tz::get_tzdb();  // before the try: a missing database must not be reported as an unknown name
  try {
    return tz::locate_zone(name);
  } catch (const std::runtime_error&) {
    refuse("calendar: zone", '"' + name + '"', "a name of the IANA time zone database, such as Europe/Berlin");
  }
}

}  // namespace

TimeZone::TimeZone(const std::string& name) : zone_(name == "UTC" ? nullptr : find(name)) {
  if (zone_ != nullptr) to_local({});  // a zone that cannot be read fails here, not at the first occurrence
}

TimeZone::Seconds TimeZone::to_local(Seconds utc) const {
  return zone_ == nullptr ? utc : utc + zone_of(zone_).get_info(utc).offset;
}

TimeZone::Utc TimeZone::to_utc(Seconds local) const {
  if (zone_ == nullptr) return {Kind::Unique, local, local};
  const tz::local_info info = zone_of(zone_).get_info(tz::local_seconds(local.time_since_epoch()));
  const Seconds first = local - info.first.offset;
  if (info.result == tz::local_info::unique) return {Kind::Unique, first, first};
  return {info.result == tz::local_info::nonexistent ? Kind::Gap : Kind::Fold, first, local - info.second.offset};
}

}  // namespace hwt::internal
