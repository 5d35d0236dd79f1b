#pragma once

#include <grpcpp/grpcpp.h>

#include "common/common.h"
#include "store.grpc.pb.h"

namespace engine {

/// Answers at once until it is destroyed.
class Server final : private store::Store::CallbackService {
 public:
  /// Listens on this port of 127.0.0.1; 0 stands for any port. Throws std::runtime_error.
  explicit Server(int port = 0) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port), grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    if (!server_ || port_ == 0) throw std::runtime_error("cannot listen on a port of 127.0.0.1");
  }
  ~Server() { server_->Shutdown(std::chrono::system_clock::now()); }

  int port() const { return port_; }

 private:
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context, const store::Request* request,
                                store::Reply* reply) override {
    reply->set_id(request->id());
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace engine
