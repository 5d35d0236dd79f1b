#pragma once

#include <cstdint>
#include <functional>
#include <thread>

namespace hwt::internal {

/// The default for Options::thread_factory: a thread that is named "hwt-worker" where the system has names. On Linux it
/// does not inherit what the thread that makes it has been given: it runs with the default policy, on the processors
/// that the process had when it began.
std::thread make_worker_thread(std::function<void()> body);

/// A number that a forked child does not share; 0 where there is no fork.
std::int64_t this_process() noexcept;

}  // namespace hwt::internal
