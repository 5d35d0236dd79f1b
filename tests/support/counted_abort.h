#pragma once

#include <csignal>

#if defined(HWT_TEST_COUNTING)
extern "C" void __gcov_dump(void);  // NOLINT(bugprone-reserved-identifier)
#endif

namespace hwt::test {

/// Makes a coverage build write its counts when this process aborts. For the child of a death test.
inline void count_until_abort() {
#if defined(HWT_TEST_COUNTING)
  std::signal(SIGABRT, [](int) { __gcov_dump(); });
#endif
}

}  // namespace hwt::test
