// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hwt::internal {

/// Calls a function at the end of each thread that has set a value. A thread_local with a destructor has two faults:
/// the program ends if there is no memory to register the destructor, and MinGW calls it after the variable's memory
/// was freed.
namespace thread_end {

/// Sets the function. Called before the first set_value(), once by each user, always with the same function. Throws
/// std::system_error if the process has no more keys.
void prepare(void (*callback)(void* value) noexcept);

/// Sets the value of the calling thread, for a call of callback(value) when the thread ends. Replaces an earlier value.
/// The call comes once, among the destructors of the thread's other variables. Returns false without memory; then the
/// earlier value stays.
bool set_value(void* value) noexcept;

/// Returns false before prepare(), and once the library is being unloaded or the process exits. Then no callback is
/// made, and set_value() returns false. On Windows it stays true, because the library stays loaded.
bool available() noexcept;

}  // namespace thread_end

}  // namespace hwt::internal
