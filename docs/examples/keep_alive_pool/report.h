#pragma once

#include <iosfwd>
#include <string>

#include "connection_pool.h"

namespace pool {

/// Whether each connection has met the promises of the timer. On the real clock a machine that is busy makes some
/// expire late, and some that did not send in time: that counts on simulated time only.
bool as_promised(const Results& results);

void write_report(std::ostream& out, const std::string& title, const Times& times, const Results& results);

}  // namespace pool
