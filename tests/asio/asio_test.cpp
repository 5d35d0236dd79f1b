// asio.h. The cases are those of boost_asio_test.cpp, too.

#include "hashed_wheel_timer/asio.h"

#include <asio.hpp>
#include <asio/experimental/deferred.hpp>

namespace host = asio;
namespace net = hwt::net;
using Error = asio::error_code;
inline constexpr auto kDeferred = asio::experimental::deferred;

#include "tests/asio/cases.h"

namespace guide {
#include "asio_block.h"

TEST(Guide, ServesUntilNothingIsLeftToWaitFor) {
  asio::io_context loop;
  asio::ip::tcp::socket socket(loop, asio::ip::tcp::v4());
  asio::post(loop, [&] { loop.stop(); });
  serve(loop, socket);
  EXPECT_TRUE(socket.is_open());
}
}  // namespace guide
