#pragma once

#include <cstdint>

// Takes the place of the library's header: each test defines how the counter runs.
namespace hwt::internal::cycle_counter {

bool is_the_clock() noexcept;
std::uint64_t read() noexcept;

}  // namespace hwt::internal::cycle_counter
