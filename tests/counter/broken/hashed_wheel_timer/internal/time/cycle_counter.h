#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

// Takes the place of the library's header: a counter of two cycles in a nanosecond, which a test can break.
namespace hwt::internal::cycle_counter {

enum class Fault : int { None, Fast, Slow, Slewed, Still, Back, FarBack };

inline std::atomic<Fault> fault{Fault::None};
inline std::atomic<std::uint64_t> broken_at{0};  // cycles

inline bool is_the_clock() noexcept { return true; }

inline std::uint64_t read_real() noexcept {
  return 2 *
         static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

inline std::uint64_t read() noexcept {
  const std::uint64_t real = read_real();
  const std::uint64_t since = real - broken_at.load();
  switch (fault.load()) {
    case Fault::Fast:
      return real + since;
    case Fault::Slow:
      return real - since / 2;
    case Fault::Slewed:
      return real - since / 13;  // as if the clock were slewed by 83,333 millionths
    case Fault::Still:
      return real - since;
    case Fault::Back:
      return real - 600'000;  // 300 us, less than CycleRate::kWindow: a thread may not notice it
    case Fault::FarBack:
      return real / 2;
    case Fault::None:
      break;
  }
  return real;
}

inline void break_it(Fault how) noexcept {
  broken_at.store(read_real());
  fault.store(how);
}

}  // namespace hwt::internal::cycle_counter
