// The block of docs/guide.md that drives a timer by libuv. The build extracts it into a header. The header uses the
// literals of the line before it.

#include "tests/loops/driven.h"

using namespace std::chrono_literals;

#include "uv_block.h"

namespace {

TEST(UvTimer, RunsTimeoutsOfAnyThread) {
  uv_loop_t loop;
  ASSERT_EQ(uv_loop_init(&loop), 0);
  {
    UvTimer uv(&loop);
    uv_async_t ends;
    ends.data = &uv;
    uv_async_init(&loop, &ends, [](uv_async_t* self) {
      static_cast<UvTimer*>(self->data)->close();
      uv_close(reinterpret_cast<uv_handle_t*>(self), nullptr);
    });
    std::thread runs([&] { uv_run(&loop, UV_RUN_DEFAULT); });
    hwt::test::expect_driven(uv.timer);
    uv_async_send(&ends);
    runs.join();
  }
  EXPECT_EQ(uv_loop_close(&loop), 0);
}

}  // namespace
