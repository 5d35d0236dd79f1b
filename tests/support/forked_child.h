#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "tests/support/build_kind.h"

#if defined(HWT_TEST_COUNTING)
extern "C" void __gcov_dump(void);  // NOLINT(bugprone-reserved-identifier)
#endif

namespace hwt::test {

/// Without anything that the parent has noted for its own end; what was covered counts.
[[noreturn]] inline void end_child(int status) {
#if defined(HWT_TEST_COUNTING)
  __gcov_dump();
#endif
  _exit(status);
}

/// The wait status of a forked child that ends with what f returns; one that hangs is killed.
template <class F>
int status_of_child(F f) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // ends a child that waits for a thread that it does not have
    end_child(f());
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

}  // namespace hwt::test
