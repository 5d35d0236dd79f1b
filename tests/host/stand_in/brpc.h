#pragma once

// Stands in for brpc 1.17.0 and gflags 2.2.2: the names that a TimerThread uses, with their signatures, in C++14. The
// comments describe the behaviour of these versions.

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <string>

namespace stand_in {

// In the test. A name is known while its variable or flag exists.
void make_known(const std::string& name, std::function<double()> read);
void forget(const std::string& name);

struct Flag {
  explicit Flag(const char* name) { make_known(name, {}); }
};

struct Fatal {
  ~Fatal() { std::abort(); }
  template <class T>
  Fatal& operator<<(const T& part) {
    std::cerr << part;
    return *this;
  }
};

}  // namespace stand_in

// gflags: a program ends at its start if its command line has a flag that no source file defines. The macro opens a
// namespace of its own.
#define DEFINE_uint32(name, value, help) \
  std::uint32_t FLAGS_##name = value;    \
  static const ::stand_in::Flag flag_##name(#name)

// brpc: LOG(FATAL) ends the program.
#define LOG(level) ::stand_in::Fatal()

// brpc: in the global namespace, and safe in threads.
inline const char* berror(int error) { return std::strerror(error); }

namespace butil {

using std::atomic;
using std::memory_order;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;

struct PlatformThread {
  // brpc: sets the name that `ps -L` shows, except for the main thread.
  static void SetNameSimple(const char* name) { pthread_setname_np(pthread_self(), name); }
};

}  // namespace butil

namespace bvar {

template <class T>
class PassiveStatus {
 public:
  PassiveStatus(T (*read)(void*), void* argument) : read_(read), argument_(argument) {}
  PassiveStatus(const PassiveStatus&) = delete;
  T get_value() const { return read_(argument_); }

 private:
  T (*read_)(void*);
  void* argument_;
};

// brpc: a thread of bvar reads the variable once a second, until the destructor of the PerSecond returns. The name is
// "prefix_name". Here the test reads it.
template <class Variable>
class PerSecond {
 public:
  explicit PerSecond(Variable* variable) : variable_(variable) {}
  PerSecond(const PerSecond&) = delete;
  ~PerSecond() { stand_in::forget(name_); }
  int expose_as(const std::string& prefix, const std::string& name) {
    name_ = prefix + "_" + name;
    const Variable* variable = variable_;
    stand_in::make_known(name_, [variable] { return static_cast<double>(variable->get_value()); });
    return 0;
  }

 private:
  Variable* variable_;
  std::string name_;
};

}  // namespace bvar

namespace bthread {

// brpc: without a time for no timeout. Returns at once if the word has another value, and may return early.
inline long futex_wait_private(void* word, int expected, const timespec* timeout) {
  return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout, nullptr, 0);
}
inline long futex_wake_private(void* word, int count) {
  return syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

}  // namespace bthread
