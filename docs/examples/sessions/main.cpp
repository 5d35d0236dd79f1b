#include <asio.hpp>
#include <iostream>

#include "hashed_wheel_timer/asio.h"
#include "hashed_wheel_timer/timeout_scope.h"

using namespace std::chrono_literals;
using asio::ip::tcp;

/// A connection. Its timeouts use it by a plain pointer, because they end with it.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, hwt::Timer& timer) : socket_(std::move(socket)), timer_(timer), timeouts_(timer) {}
  ~Session() { std::cout << "session ends; timeouts that end with it: " << timeouts_.size() << '\n'; }

  void start() {
    idle_ = timeouts_.add([this] { close_idle(); }, 200ms);
    read();
  }

 private:
  void read() {
    socket_.async_read_some(asio::buffer(&request_, 1), [self = shared_from_this()](asio::error_code end, std::size_t) {
      if (end) return;  // drops the last owner
      self->timer_.reschedule(self->idle_, 200ms);
      self->timeouts_.add([session = self.get()] { session->refuse(); }, 50ms);  // nothing answers in this example
      self->read();
    });
  }
  void refuse() {
    std::cout << "request times out\n";
    asio::error_code gone;
    asio::write(socket_, asio::buffer("-", 1), gone);
  }
  void close_idle() {
    std::cout << "session is idle\n";
    socket_.close();
  }

  tcp::socket socket_;
  hwt::Timer& timer_;
  char request_ = 0;
  hwt::TimeoutId idle_;
  hwt::TimeoutScope timeouts_;  // the last member, so that it is destroyed first
};

int main() {
  asio::io_context loop;
  hwt::net::LoopTimer timer(loop.get_executor());
  tcp::acceptor acceptor(loop, {asio::ip::address_v4::loopback(), 0});
  tcp::socket patient(loop);
  tcp::socket hasty(loop);
  for (tcp::socket* const client : {&patient, &hasty}) {
    client->connect(acceptor.local_endpoint());
    std::make_shared<Session>(acceptor.accept(), timer)->start();
    asio::write(*client, asio::buffer("+", 1));
  }
  timer.new_timeout([&] { hasty.close(); }, 10ms);
  loop.run();
  std::cout << "pending timeouts: " << timer.pending_timeouts() << '\n';
}
