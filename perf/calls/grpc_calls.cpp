// Calls of gRPC over loopback. gRPC sends a deadline of its own to the server, where it arms a second timer. With this
// library only the client has a timer. Its task cancels the call, and the server notices the cancel.

#include <grpcpp/grpcpp.h>

#include <atomic>

#include "blocks.h"
#include "grpc_event_engine/server.h"
#include "hashed_wheel_timer/hashed_wheel_timer.h"

namespace calls {
namespace {

/// Keeps kInFlight calls in flight. Each ends, and the next one starts, on a thread of gRPC.
class Client {
 public:
  explicit Client(int port) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // the server is local
    const std::string address = "127.0.0.1:" + std::to_string(port);
    stub_ = store::Store::NewStub(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  }

  void make_calls(Limit limit, std::int64_t count) {
    limit_ = limit;
    to_start_ = count;
    busy_ = kInFlight;
    for (Call& call : calls_) start(call);
    for (std::size_t busy = busy_; busy != 0; busy = busy_) busy_.wait(busy);
    if (failed_) throw std::runtime_error("a call failed");
  }

 private:
  struct Call {
    std::optional<grpc::ClientContext> context;  // of one call only
    store::Request request;
    store::Reply reply;
    hwt::TimeoutId timeout;
  };

  void start(Call& call) {
    if (failed_ || to_start_.fetch_sub(1) <= 0) {
      if (busy_.fetch_sub(1) == 1) busy_.notify_one();
      return;
    }
    grpc::ClientContext& context = call.context.emplace();
    if (limit_ == Limit::Own) context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    if (limit_ == Limit::Ours) call.timeout = timer_.add([&context] { context.TryCancel(); }, kDeadline);
    stub_->async()->Get(&context, &call.request, &call.reply, [this, &call](const grpc::Status& status) {
      const bool in_time = limit_ != Limit::Ours || timer_.cancel(call.timeout) == hwt::CancelResult::Cancelled;
      if (!in_time || !status.ok()) failed_ = true;
      start(call);
    });
  }

  std::unique_ptr<store::Store::Stub> stub_;
  std::array<Call, kInFlight> calls_;
  Limit limit_ = Limit::None;
  std::atomic<std::int64_t> to_start_{0};
  std::atomic<std::size_t> busy_{0};
  std::atomic<bool> failed_{false};
  hwt::HashedWheelTimer timer_{{.on_task_error = common::give_up}};  // last: its task uses a call
};

bool run(common::Options& options) {
  const Settings settings = settings_of(options, 3'000);
  const engine::Server server;
  Client client(server.port());
  run_blocks("gRPC " + grpc::Version(), settings,
             [&](Limit limit, std::int64_t count) { client.make_calls(limit, count); });
  return true;
}

}  // namespace
}  // namespace calls

int main(int argc, char** argv) {
  return common::run_example(argc, argv, {"grpc_calls", "Calls of gRPC with and without a deadline.", "a call failed"},
                             calls::run);
}
