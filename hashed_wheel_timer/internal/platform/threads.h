// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

namespace hwt::internal {

/// The default for Options::thread_factory: a thread that is named "hwt-worker" where the system has names. On Linux it
/// does not inherit the scheduling of the thread that makes it, except for the nice value. It runs with the default
/// policy, on the processors that the process had when the library was loaded. Throws std::system_error if the system
/// makes no thread, and std::bad_alloc.
std::thread make_worker_thread(std::function<void()> body);

/// Returns a number of up to 56 bits that differs in a forked child; 0 on systems without fork().
std::int64_t this_process() noexcept;

/// Returns a number that changes in a child of fork(). Costs less than this_process(), which is a system call. But only
/// this_process() changes in a child of clone() or _Fork(), which call no handlers.
std::uint64_t fork_count() noexcept;

}  // namespace hwt::internal
