#pragma once

#include <array>

#include "common/common.h"
#include "common/standalone_asio.h"

namespace raft {

enum class Kind : std::uint8_t { RequestVote, Vote, Heartbeat, HeartbeatReply };

/// A datagram between nodes. It is sent as it lies in memory, because all nodes are in one process.
struct Message {
  Kind kind;
  std::uint8_t granted;  // Vote and HeartbeatReply: 0 or 1
  std::int32_t from;
  std::uint64_t term;
};

/// A UDP socket on 127.0.0.1. Only the thread that runs the io_context uses the socket. That thread must end before the
/// Endpoint is destroyed.
class Endpoint {
 public:
  /// Opens an ephemeral port. Throws std::system_error.
  explicit Endpoint(asio::io_context& io) : io_(io), socket_(io, {asio::ip::address_v4::loopback(), 0}) {}

  std::uint16_t port() const { return port_; }

  /// Calls `on_message` on the thread of the io_context for each message. Call it once.
  void listen(std::function<void(const Message&)> on_message) {
    on_message_ = std::move(on_message);
    asio::post(io_, [this] { receive(); });
  }

  /// Sends a datagram, which may be lost. Any thread may call it.
  void send(std::uint16_t port, const Message& message) {
    asio::post(io_, [this, port, message] {
      std::error_code lost;
      socket_.send_to(asio::buffer(&message, sizeof message), {asio::ip::address_v4::loopback(), port}, 0, lost);
    });
  }

  /// Closes the socket. Pending datagrams are lost. Any thread may call it.
  void close() {
    asio::post(io_, [this] {
      std::error_code ignored;
      socket_.close(ignored);
    });
  }

 private:
  void receive() {
    socket_.async_receive(asio::buffer(received_), [this](const std::error_code& error, std::size_t size) {
      if (!socket_.is_open()) return;
      // Ignores datagrams of another size.
      if (!error && size == sizeof(Message)) on_message_(received_[0]);
      receive();
    });
  }

  asio::io_context& io_;
  asio::ip::udp::socket socket_;
  const std::uint16_t port_ = socket_.local_endpoint().port();
  std::function<void(const Message&)> on_message_;
  std::array<Message, 2> received_{};  // one more, to detect longer datagrams
};

}  // namespace raft
