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

/// How long the work on a call of each method may take.
struct Limits {
  std::chrono::milliseconds get{150};
  std::chrono::milliseconds put{300};
};

/// What became of the calls that came in.
struct Served {
  std::atomic<std::int64_t> calls{0};
  std::atomic<std::int64_t> answered{0};
  std::atomic<std::int64_t> over_limit{0};
  std::atomic<std::int64_t> cancelled{0};  // by the client
  std::atomic<std::int64_t> refused{0};
  std::atomic<std::int64_t> early{0};  // stopped before the limit

  std::int64_t left_behind() const { return calls - answered - over_limit - cancelled - refused; }
};

/// Answers calls asynchronously, each within the limit of its method: the client may have more patience than a call is
/// worth to the server.
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

  /// Cancels what is still being handled. Before the timer is stopped.
  void stop() {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  /// Precondition: both this and the timer have been stopped.
  const Served& served() const { return served_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// One call, for as long as gRPC has to do with it.
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

  /// The work stops at the limit or when the client gives up, and then the call ends. Finish() comes last: the call may
  /// be gone right afterwards.
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
  std::unique_ptr<grpc::Server> server_;  // last: it calls the rest
};

}  // namespace store
