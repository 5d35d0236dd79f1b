#pragma once

#include <chrono>
#include <ostream>

#include "options.h"
#include "server.h"

namespace idle {

/// Writes what has happened. True if all was as it should be.
bool write_report(std::ostream& out, const Options& options, const ServerFigures& server,
                  std::chrono::nanoseconds longest_silence);

}  // namespace idle
