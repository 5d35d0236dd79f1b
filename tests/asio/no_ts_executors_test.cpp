// asio.h with ASIO_NO_TS_EXECUTORS and ASIO_NO_DEPRECATED, which remove members of Asio's executors.

#include <asio.hpp>

#include "hashed_wheel_timer/asio.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

TEST(WithoutTsExecutors, WaitsAndLimitsEnd) {
  asio::io_context loop;
  net::LoopTimer timer(loop.get_executor());
  net::WheelTimer waits(loop, timer, 1ms);
  net::BasicWheelTimer<asio::io_context::executor_type> own(loop, timer, kFar);
  std::vector<asio::error_code> ended;
  waits.async_wait(asio::bind_executor(asio::make_strand(loop), [&](asio::error_code first) {
    ended.push_back(first);
    own.async_wait(net::cancel_after(timer, 1ms, [&](asio::error_code second) {
      ended.push_back(second);
      net::async_wait(timer, asio::make_strand(loop), 1ms, [&](asio::error_code third) { ended.push_back(third); });
    }));
  }));
  loop.run();
  EXPECT_EQ(ended, (std::vector<asio::error_code>{{}, asio::error::operation_aborted, {}}));
  EXPECT_TRUE(timer.stop().empty());
}

}  // namespace
}  // namespace hwt
