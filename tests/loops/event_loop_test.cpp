// The block of the guide that drives a timer by libevent.

#include <event2/thread.h>

#include "tests/loops/driven.h"

using namespace std::chrono_literals;

#include "event_block.h"

namespace {

TEST(EventTimer, RunsTimeoutsOfAnyThreadAndItsLoopEndsWhenAnyThreadSaysSo) {
  ASSERT_EQ(evthread_use_pthreads(), 0);
  for (int round = 0; round < hwt::test::kDrivenRounds; ++round) {
    event_base* const base = event_base_new();
    ASSERT_NE(base, nullptr);
    {
      EventTimer timer(base);
      hwt::test::expect_driven_and_ended(round, timer.timer, [&] { run(base); }, [&] { end(base); });
    }
    event_base_free(base);
  }
}

}  // namespace
