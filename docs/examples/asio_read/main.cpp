#include <asio.hpp>
#include <iostream>

#include "hashed_wheel_timer/asio.h"

using namespace std::chrono_literals;
using asio::ip::tcp;

asio::awaitable<std::size_t> read_some(tcp::socket& socket, asio::mutable_buffer buffer, hwt::Timer& timer) {
  co_return co_await socket.async_read_some(buffer, hwt::net::cancel_after(timer, 250ms, asio::use_awaitable));
}

int main() {
  asio::io_context loop;
  hwt::net::LoopTimer timer(loop.get_executor());
  tcp::acceptor acceptor(loop, {asio::ip::address_v4::loopback(), 0});
  tcp::socket socket(loop);
  socket.connect(acceptor.local_endpoint());  // the peer sends nothing
  char buffer[512];
  asio::co_spawn(loop, read_some(socket, asio::buffer(buffer), timer), [](std::exception_ptr limit, std::size_t size) {
    std::cout << (limit ? "nothing within 250 ms\n" : std::to_string(size) + " bytes\n");
  });
  loop.run();
}
