#pragma once

#include <cstdint>

#include "tests/soak/totals.h"

namespace hwt::soak {

/// The life of one timer, of some seconds at most, and the fate of all its timeouts. The number of the round chooses
/// the traffic and the way in which the timer ends.
void run_round(std::uint64_t number, Totals& totals);

}  // namespace hwt::soak
