// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace hwt::internal {

/// Local times of one zone. Hides which library knows the zones: <chrono> where it can, else Howard Hinnant's date.
/// The type of a local time is std::chrono::sys_seconds here, because each library has a local_seconds of its own.
class TimeZone {
 public:
  using Seconds = std::chrono::sys_seconds;

  /// Throws std::invalid_argument for an unknown name, std::runtime_error when there is no database.
  explicit TimeZone(const std::string& name);

  /// Returns the local time at a time of UTC. Throws exceptions of the library that knows the zones. Any thread.
  Seconds to_local(Seconds utc) const;

  /// How often a local time occurs.
  enum class Kind : std::uint8_t {
    Unique,  // once
    Gap,     // never: the clocks were set forward past it
    Fold,    // twice: the clocks were set back past it
  };
  struct Utc {
    Kind kind;
    Seconds first;   // by the offset before the change
    Seconds second;  // by the offset after it; the same as first when unique
  };
  /// Returns the time or the times of UTC at a local time. For a Fold, `first` is the earlier one. For a Gap, `first`
  /// is after the change and `second` before it. Throws exceptions of the library that knows the zones. Any thread.
  Utc to_utc(Seconds local) const;

 private:
  const void* zone_;  // a time_zone of the library, which lives as long as the program; null: UTC
};

}  // namespace hwt::internal
