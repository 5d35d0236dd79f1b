// The block of docs/guide.md that drives a timer by libuv. The build extracts it into a header. The header uses the
// literals of the line before it.

#include "tests/loops/driven.h"

using namespace std::chrono_literals;

#include "uv_block.h"

namespace {

TEST(UvTimer, RunsTimeoutsOfAnyThreadAndItsLoopEndsWhenAnyThreadSaysSo) {
  for (int round = 0; round < hwt::test::kDrivenRounds; ++round) {
    uv_loop_t loop;
    ASSERT_EQ(uv_loop_init(&loop), 0);
    {
      UvTimer uv(&loop);
      hwt::test::expect_driven_and_ended(round, uv.timer, [&] { uv_run(&loop, UV_RUN_DEFAULT); }, [&] { uv.close(); });
    }
    EXPECT_EQ(uv_loop_close(&loop), 0);
  }
}

}  // namespace
