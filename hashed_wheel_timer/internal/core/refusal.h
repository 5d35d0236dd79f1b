#pragma once

#include <cstdint>

namespace hwt::internal {

/// Why Core::schedule() has refused.
enum class Refusal : std::uint8_t { None, Stopped, Full, NoMemory };

struct Refused {
  Refusal why;
  std::int64_t limit;  // for the text of Refusal::Full

  /// Throws what Timer::new_timeout() promises.
  [[noreturn]] void raise() const;
};

}  // namespace hwt::internal
