#pragma once

namespace hwt::internal {

/// Calls one function when threads end that have asked for it. A thread_local with a destructor would do the same, but
/// ends the program when there is no memory to note the destructor, and MinGW's are destroyed after their memory.
namespace thread_end {

/// Once for each user, before the first tell(). Throws std::system_error when the process has no more keys.
/// All must give the same function.
void prepare(void (*callback)(void* value) noexcept);

/// The callback gets the latest `value` when the calling thread ends, once, among the destructors of what else belongs
/// to the thread. False: no memory. Then the thread's value before is still the latest.
bool tell(void* value) noexcept;

/// From the end of the library on, nothing is called and tell() must not be used: the process exits, or has unloaded
/// the code that would be called.
bool available() noexcept;

}  // namespace thread_end

}  // namespace hwt::internal
