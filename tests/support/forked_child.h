#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "tests/support/build_kind.h"

#if defined(HWT_TEST_COUNTING)
extern "C" void __gcov_dump(void);  // NOLINT(bugprone-reserved-identifier)
#endif

namespace hwt::test {

/// Ends a forked child without the exit handlers of its parent, and writes the coverage counts.
[[noreturn]] inline void end_child(int status) {
#if defined(HWT_TEST_COUNTING)
  __gcov_dump();
#endif
  _exit(status);
}

/// Forks a child that exits with the result of f(), and returns its wait status. A child that hangs is killed.
template <class F>
int status_of_child(F f) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // s; a child may wait for a thread that exists only in its parent
    end_child(f());
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

}  // namespace hwt::test
