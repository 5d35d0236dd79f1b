#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace hwt::internal {

/// Local times of one zone. Hides which library knows the zones: <chrono> where it can, else Howard Hinnant's date.
/// Local times are time points of sys_time here, since the two libraries name the type of their own differently.
class TimeZone {
 public:
  using Seconds = std::chrono::sys_seconds;

  /// Throws std::invalid_argument for an unknown name, std::runtime_error when there is no database.
  explicit TimeZone(const std::string& name);

  Seconds to_local(Seconds utc) const;

  enum class Kind : std::uint8_t { Unique, Gap, Fold };
  struct Utc {
    Kind kind;
    Seconds first;   // by the offset before the change
    Seconds second;  // by the offset after it; the same as first when unique
  };
  Utc to_utc(Seconds local) const;

 private:
  const void* zone_;  // a time_zone of the library, which lives as long as the program; null: UTC
};

}  // namespace hwt::internal
