#pragma once

#include <iosfwd>

#include "client.h"
#include "options.h"

namespace rpc {

/// Draws the latencies of the requests and the lateness of the timeouts.
void write_picture(std::ostream& out, const Options& options, const Results& results);

}  // namespace rpc
