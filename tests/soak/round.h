#pragma once

#include <cstdint>

#include "tests/soak/totals.h"

namespace hwt::soak {

/// The life of one timer, of some seconds at most, under a traffic that the number of the round chooses, with an end
/// that it chooses too; and what became of all its timeouts.
void run_round(std::uint64_t number, Totals& totals);

}  // namespace hwt::soak
