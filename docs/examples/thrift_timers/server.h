#pragma once

#include <thrift/TProcessor.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/server/TThreadedServer.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TServerSocket.h>

#include <cstdint>
#include <exception>
#include <future>
#include <memory>
#include <string>
#include <thread>

namespace thrift_timers {

/// Answers a call with its text. Does not answer the method "silent".
class Echo final : public apache::thrift::TProcessor {
 public:
  bool process(std::shared_ptr<apache::thrift::protocol::TProtocol> in,
               std::shared_ptr<apache::thrift::protocol::TProtocol> out, void*) override {
    std::string method;
    std::string text;
    apache::thrift::protocol::TMessageType type{};
    std::int32_t number = 0;
    in->readMessageBegin(method, type, number);
    in->readString(text);
    in->readMessageEnd();
    if (method == "silent") return true;
    out->writeMessageBegin(method, apache::thrift::protocol::T_REPLY, number);
    out->writeString(text);
    out->writeMessageEnd();
    out->getTransport()->flush();
    return true;
  }
};

/// A TThreadedServer on a free port of 127.0.0.1 as long as the object lives.
class Server final : private apache::thrift::server::TServerEventHandler {
 public:
  /// Returns when the server listens. Throws what listening throws.
  Server() {
    // Owns nothing: the destructor waits for the end of the server.
    server_.setServerEventHandler(std::shared_ptr<TServerEventHandler>(std::shared_ptr<void>(), this));
    thread_ = std::jthread([this] {
      try {
        server_.serve();
      } catch (...) {
        listens_.set_exception(std::current_exception());  // it does not listen
      }
    });
    listens_.get_future().get();
  }
  ~Server() override { server_.stop(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const { return socket_->getPort(); }

 private:
  void preServe() override { listens_.set_value(); }

  const std::shared_ptr<apache::thrift::transport::TServerSocket> socket_ =
      std::make_shared<apache::thrift::transport::TServerSocket>("127.0.0.1", 0);
  apache::thrift::server::TThreadedServer server_{
      std::make_shared<Echo>(), socket_, std::make_shared<apache::thrift::transport::TBufferedTransportFactory>(),
      std::make_shared<apache::thrift::protocol::TBinaryProtocolFactory>()};
  std::promise<void> listens_;
  std::jthread thread_;
};

}  // namespace thrift_timers
