#pragma once

#include <chrono>
#include <cstdint>

namespace hwt::oracle {

/// Runs rounds in a process of its own for so long, from this seed on. Stops the process with SIGSTOP now and then and
/// continues it, measures its memory, and ends it if it hangs. Prints a report, and writes a line of CSV for each look
/// into the file. True: all promises were kept, and the memory has not grown.
bool supervise(std::uint64_t seed, std::chrono::seconds length, const char* samples);

}  // namespace hwt::oracle
