// The block of the guide that drives a timer by libevent.

#include <event2/thread.h>

#include "tests/loops/driven.h"

using namespace std::chrono_literals;

#include "event_block.h"

namespace {

TEST(EventTimer, RunsTimeoutsOfAnyThread) {
  ASSERT_EQ(evthread_use_pthreads(), 0);
  event_base* const base = event_base_new();
  ASSERT_NE(base, nullptr);
  {
    EventTimer timer(base);
    std::thread runs([&] { event_base_loop(base, EVLOOP_NO_EXIT_ON_EMPTY); });
    hwt::test::expect_driven(timer.timer);
    event_base_loopbreak(base);
    runs.join();
  }
  event_base_free(base);
}

}  // namespace
