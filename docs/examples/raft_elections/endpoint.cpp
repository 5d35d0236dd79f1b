#include "endpoint.h"

#include <utility>

namespace raft {

Endpoint::Endpoint(asio::io_context& io)
    : io_(io), socket_(io, {asio::ip::address_v4::loopback(), 0}), port_(socket_.local_endpoint().port()) {}

void Endpoint::listen(std::function<void(const Message&)> on_message) {
  on_message_ = std::move(on_message);
  asio::post(io_, [this] { receive(); });
}

void Endpoint::send(std::uint16_t port, const Message& message) {
  asio::post(io_, [this, port, bytes = encode(message)] {
    std::error_code lost;
    socket_.send_to(asio::buffer(bytes), {asio::ip::address_v4::loopback(), port}, 0, lost);
  });
}

void Endpoint::close() {
  asio::post(io_, [this] {
    std::error_code ignored;
    socket_.close(ignored);
  });
}

void Endpoint::receive() {
  socket_.async_receive(asio::buffer(received_), [this](const std::error_code& error, std::size_t size) {
    if (!socket_.is_open()) return;
    if (!error) {
      if (const auto message = decode({received_.data(), size})) on_message_(*message);
    }
    receive();
  });
}

}  // namespace raft
