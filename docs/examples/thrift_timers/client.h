#pragma once

#include <sys/socket.h>
#include <thrift/concurrency/Exception.h>
#include <thrift/concurrency/TimerManager.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TSocket.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace thrift_timers {

/// Makes calls over one connection, each with a limit. Connects again after a call that was not answered.
class Client {
 public:
  Client(std::shared_ptr<apache::thrift::concurrency::TimerManager> timers, int port)
      : timers_(std::move(timers)), port_(port) {}

  /// Calls the method, and returns whether the answer came within the limit. Throws TException if there is no server.
  bool call(const std::string& method, std::chrono::milliseconds limit) {
    if (!socket_) connect();
    const auto timer = timers_->add(std::make_shared<Interrupt>(socket_), limit);
    bool answered = false;
    try {
      answered = exchange(method);
    } catch (const apache::thrift::transport::TTransportException&) {
      socket_.reset();  // the timer has ended the connection, or the server has
    }
    try {
      timers_->remove(timer);
    } catch (const apache::thrift::TException&) {
      socket_.reset();  // too late: the timer ends the connection
    }
    return answered;
  }

 private:
  using Socket = apache::thrift::transport::TSocket;

  /// Ends the connection, and so the call that reads from it.
  class Interrupt final : public apache::thrift::concurrency::Runnable {
   public:
    explicit Interrupt(std::shared_ptr<Socket> socket) : socket_(std::move(socket)) {}
    void run() override { shutdown(socket_->getSocketFD(), SHUT_RDWR); }

   private:
    const std::shared_ptr<Socket> socket_;  // keeps the descriptor open
  };

  void connect() {
    const auto socket = std::make_shared<Socket>("127.0.0.1", port_);
    socket->open();
    protocol_ = std::make_shared<apache::thrift::protocol::TBinaryProtocol>(
        std::make_shared<apache::thrift::transport::TBufferedTransport>(socket));
    socket_ = socket;
  }

  bool exchange(const std::string& method) {
    const std::string text = "call " + std::to_string(++calls_);
    protocol_->writeMessageBegin(method, apache::thrift::protocol::T_CALL, calls_);
    protocol_->writeString(text);
    protocol_->writeMessageEnd();
    protocol_->getTransport()->flush();
    std::string answered_method;
    std::string answer;
    apache::thrift::protocol::TMessageType type{};
    std::int32_t number = 0;
    protocol_->readMessageBegin(answered_method, type, number);
    protocol_->readString(answer);
    protocol_->readMessageEnd();
    return number == calls_ && answer == text;
  }

  const std::shared_ptr<apache::thrift::concurrency::TimerManager> timers_;
  const int port_;
  std::int32_t calls_ = 0;
  std::shared_ptr<Socket> socket_;
  std::shared_ptr<apache::thrift::protocol::TProtocol> protocol_;
};

}  // namespace thrift_timers
