#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <stop_token>

#include "common/common.h"
#include "common/detached.h"
#include "hashed_wheel_timer/coroutine.h"
#include "hashed_wheel_timer/stop_after.h"
#include "store.grpc.pb.h"
#include "work.h"

namespace store {

/// The limit of the work on a call of each method.
struct Limits {
  std::chrono::milliseconds get{150};
  std::chrono::milliseconds put{300};
};

/// Counts calls by their outcome.
struct Served {
  std::atomic<std::int64_t> calls{0};
  std::atomic<std::int64_t> answered{0};
  std::atomic<std::int64_t> over_limit{0};
  std::atomic<std::int64_t> cancelled{0};  // by the client
  std::atomic<std::int64_t> refused{0};
  std::atomic<std::int64_t> early{0};  // stopped before the limit

  std::int64_t left_behind() const { return calls - answered - over_limit - cancelled - refused; }
};

/// Answers calls asynchronously, each within the limit of its method. The client's deadline may be longer.
class Server final : private Store::CallbackService {
 public:
  /// Listens on an ephemeral port of 127.0.0.1. Throws std::runtime_error.
  Server(hwt::Timer& timer, const Limits& limits, Work& work) : timer_(timer), limits_(limits), work_(work) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    if (!server_ || port_ == 0) throw std::runtime_error("cannot listen on a port of 127.0.0.1");
  }
  ~Server() { stop(); }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  /// Cancels the open calls. Call it before the timer stops.
  void stop() {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  /// Precondition: this server and the timer have been stopped.
  const Served& served() const { return served_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// One call. It deletes itself when gRPC is done with it.
  class Call : public grpc::ServerUnaryReactor {
   public:
    std::stop_token client_gave_up() const { return cancelled_.get_token(); }

   private:
    void OnCancel() override { cancelled_.request_stop(); }
    void OnDone() override { delete this; }

    std::stop_source cancelled_;
  };

  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext*, const Request* request, Reply* reply) override {
    return handle(*request, *reply, limits_.get);
  }
  grpc::ServerUnaryReactor* Put(grpc::CallbackServerContext*, const Request* request, Reply* reply) override {
    return handle(*request, *reply, limits_.put);
  }

  grpc::ServerUnaryReactor* handle(const Request& request, Reply& reply, std::chrono::milliseconds limit) {
    auto* const call = new Call;
    ++served_.calls;
    reply.set_id(request.id());
    work_on(*call, limit);
    return call;
  }

  /// Stops the work at the limit or when the client gives up, then ends the call. Finish() comes last, because it may
  /// destroy the call.
  common::Detached work_on(Call& call, std::chrono::milliseconds limit) {
    const std::optional<std::chrono::nanoseconds> takes = work_.next();
    if (!takes) {
      ++served_.refused;
      call.Finish({grpc::UNAVAILABLE, "overloaded"});
      co_return;
    }
    const Clock::time_point started = Clock::now();
    hwt::StopAfter stop(timer_, limit, call.client_gave_up());
    const hwt::Wake wake = co_await hwt::sleep_for(timer_, *takes, stop.token());
    if (wake == hwt::Wake::Expired) {
      ++served_.answered;
      call.Finish(grpc::Status::OK);
    } else if (stop.timed_out()) {
      ++served_.over_limit;
      if (Clock::now() - started < limit) ++served_.early;
      call.Finish({grpc::DEADLINE_EXCEEDED, "over the limit of " + common::text_of(limit)});
    } else {
      ++served_.cancelled;
      call.Finish(grpc::Status::CANCELLED);
    }
  }

  hwt::Timer& timer_;
  const Limits limits_;
  Work& work_;
  Served served_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;  // last: it calls the other members
};

}  // namespace store
