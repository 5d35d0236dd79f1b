#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "common/standalone_asio.h"
#include "message.h"

namespace raft {

/// A UDP socket on 127.0.0.1. The thread that runs the io_context is the only one that touches the socket; it must have
/// ended before the Endpoint goes.
class Endpoint {
 public:
  /// Opens an ephemeral port. Throws std::system_error.
  explicit Endpoint(asio::io_context& io);

  std::uint16_t port() const { return port_; }

  /// From now on `on_message` is called, on the thread of the io_context. Once.
  void listen(std::function<void(const Message&)> on_message);

  /// From any thread. May be lost, like any datagram.
  void send(std::uint16_t port, const Message& message);

  /// From any thread. What has not been sent or received by then is lost.
  void close();

 private:
  void receive();

  asio::io_context& io_;
  asio::ip::udp::socket socket_;
  const std::uint16_t port_;
  std::function<void(const Message&)> on_message_;
  std::array<char, kMessageBytes + 1> received_;  // one more, to notice what is too long
};

}  // namespace raft
