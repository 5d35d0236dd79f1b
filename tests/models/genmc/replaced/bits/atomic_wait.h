#pragma once

// In place of libstdc++'s: what std::atomic's wait() and notify_all() are made of. GenMC knows no system calls. No
// program waits this way.

#define __cpp_lib_atomic_wait 201907L

namespace std {

namespace __detail {
inline void __thread_relax() noexcept {}  // the standard library's own atomics use it
}  // namespace __detail

template <class T, class Load>
void __atomic_wait_address_v(const T*, T, Load) noexcept {}
template <class T>
void __atomic_notify_address(const T*, bool) noexcept {}

}  // namespace std
