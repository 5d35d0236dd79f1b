// The blocks of docs/guide.md with asio.h.

#include "tests/asio/kit.h"

using namespace std::chrono_literals;

namespace guide {
#include "asio_block.h"

TEST(Guide, ServesUntilAnyThreadStopsItsLoop) {
  for (const bool itself : {true, false}) {
    asio::io_context loop;
    asio::ip::tcp::socket socket(loop, asio::ip::tcp::v4());
    hwt::test::Latch runs;
    asio::post(loop, [&] {
      runs.count_down();
      if (itself) loop.stop();
    });
    std::thread ends([&] {
      EXPECT_TRUE(runs.wait());
      if (!itself) loop.stop();
    });
    const auto begin = std::chrono::steady_clock::now();
    serve(loop, socket);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s) << "it waited until the connection was idle";
    ends.join();
    EXPECT_TRUE(socket.is_open());
  }
}

TEST(Guide, TellsALimitFromAnotherCancelAndFromAnAnswer) {
  asio::io_context loop;
  hwt::ManualTimer timer;
  const asio::ip::tcp::endpoint any_port(asio::ip::address_v4::loopback(), 0);
  asio::ip::tcp::acceptor acceptor(loop, any_port);
  asio::ip::tcp::socket socket(loop);
  socket.connect(acceptor.local_endpoint());
  asio::ip::tcp::socket peer = acceptor.accept();
  const auto read_until = [&](const std::function<void()>& end) {
    std::array<char, 4> buffer{};
    asio::error_code ended = asio::error::fault;
    asio::co_spawn(loop, read_within_250ms(socket, asio::buffer(buffer), timer),
                   [&](const std::exception_ptr& failed, asio::error_code error) {
                     EXPECT_EQ(failed, nullptr);
                     ended = error;
                   });
    loop.poll();
    end();
    loop.run();
    loop.restart();
    return ended;
  };
  EXPECT_EQ(read_until([&] { timer.advance(250ms); }), asio::error::timed_out);
  EXPECT_EQ(read_until([&] {
              timer.advance(249ms);
              socket.cancel();
            }),
            asio::error::operation_aborted);
  EXPECT_FALSE(read_until([&] { asio::write(peer, asio::buffer("four", 4)); }));
  EXPECT_EQ(timer.pending_timeouts(), 0);
}
}  // namespace guide
