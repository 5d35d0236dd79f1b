#pragma once

#include <cstdint>

// Takes the place of the library's header. Time does not pass in a model.
namespace hwt::internal::cycle_counter {

inline bool is_the_clock() noexcept { return false; }
inline std::uint64_t read() noexcept { return 0; }

}  // namespace hwt::internal::cycle_counter
