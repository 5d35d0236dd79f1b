// Requests over the connections of the example rpc_timeouts, on loopback. A deadline is a steady_timer of the
// connection, or a timeout of one timer for all, as in the example.

#include "blocks.h"
#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "rpc_timeouts/connection.h"

namespace calls {
namespace {

using asio::ip::tcp;

/// Keeps a request in flight on each connection, in one loop with the server, which answers at once.
class Client {
 public:
  Client() {
    tcp::acceptor acceptor(loop_, {asio::ip::address_v4::loopback(), 0});
    for (std::unique_ptr<Call>& call : calls_) {
      tcp::socket socket(loop_);
      socket.connect(acceptor.local_endpoint());
      call = std::make_unique<Call>(*this, std::move(socket), acceptor.accept());
    }
  }

  void make_calls(Limit limit, std::int64_t count) {
    limit_ = limit;
    to_start_ = to_end_ = count;
    for (const std::unique_ptr<Call>& call : calls_) call->start();
    loop_.restart();
    loop_.run();
  }

 private:
  class Call {
   public:
    Call(Client& client, tcp::socket socket, tcp::socket accepted)
        : client_(client),
          own_(client.loop_),
          near_(
              std::move(socket), [this](std::uint64_t id) { end(id); }, fail),
          far_(std::move(accepted), [this](std::uint64_t id) { far_.send({id, {}}); }, fail) {
      near_.start();
      far_.start();
    }

    void start() {
      if (client_.to_start_-- <= 0) return;
      near_.send({++id_, {}});
      if (client_.limit_ == Limit::Own) {
        own_.expires_after(kDeadline);
        own_.async_wait([](const std::error_code& answered) {
          if (!answered) fail(asio::error::timed_out);
        });
      } else if (client_.limit_ == Limit::Ours) {
        ours_ =
            client_.timer_.add([this] { asio::post(client_.loop_, [] { fail(asio::error::timed_out); }); }, kDeadline);
      }
    }

   private:
    [[noreturn]] static void fail(const std::error_code& error) {
      throw std::runtime_error("a request failed: " + rpc::explain(error));
    }

    void end(std::uint64_t id) {
      if (id != id_) throw std::runtime_error("an answer to another request");
      if (client_.limit_ == Limit::Own) own_.cancel();
      if (client_.limit_ == Limit::Ours && client_.timer_.cancel(ours_) != hwt::CancelResult::Cancelled) {
        fail(asio::error::timed_out);
      }
      if (--client_.to_end_ == 0) client_.loop_.stop();
      start();
    }

    Client& client_;
    std::uint64_t id_ = 0;
    asio::steady_timer own_;
    hwt::TimeoutId ours_;
    rpc::Connection near_;  // the client's end
    rpc::Connection far_;   // the server's end, which returns each request as its answer
  };

  asio::io_context loop_{1};
  Limit limit_ = Limit::None;
  std::int64_t to_start_ = 0;
  std::int64_t to_end_ = 0;
  std::array<std::unique_ptr<Call>, kInFlight> calls_;
  hwt::HashedWheelTimer timer_{{.on_task_error = common::give_up}};  // last: its task posts to the loop
};

bool run(common::Options& options) {
  const Settings settings = settings_of(options, 5'000);
  Client client;
  run_blocks(common::formatted("Asio %d.%d.%d", ASIO_VERSION / 100000, ASIO_VERSION / 100 % 1000, ASIO_VERSION % 100),
             settings, [&](Limit limit, std::int64_t count) { client.make_calls(limit, count); });
  return true;
}

}  // namespace
}  // namespace calls

int main(int argc, char** argv) {
  return common::run_example(
      argc, argv, {"asio_calls", "Requests on Asio with and without a deadline.", "a request failed"}, calls::run);
}
