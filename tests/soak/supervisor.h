#pragma once

#include <chrono>
#include <string>

namespace hwt::soak {

/// Runs the load in a process of its own for so long. It stops the process with SIGSTOP now and then and continues it,
/// measures its memory, and ends it if it hangs. Prints a report, and writes a line of CSV for each look into the file,
/// unless its name is empty. True: all promises were kept.
bool supervise(std::chrono::seconds length, const std::string& samples);

}  // namespace hwt::soak
