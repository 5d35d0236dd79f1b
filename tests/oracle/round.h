#pragma once

#include "tests/oracle/totals.h"

namespace hwt::oracle {

/// The life of one timer, and of all its timeouts. The seed chooses the kind of the timer, the traffic, and the way in
/// which the timer ends. A broken promise ends the program.
/// `soaks`: for longer, and most of it without a record of each timeout.
void run_round(std::uint64_t seed, bool soaks, Totals& totals);

}  // namespace hwt::oracle
