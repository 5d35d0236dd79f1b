#pragma once

#include <queue>

#include "common/common.h"
#include "connection.h"
#include "latencies.h"

namespace rpc {

/// Answers each request after the latency from Latencies, or never. Runs on its own thread.
class Server {
 public:
  /// Listens on an ephemeral port of 127.0.0.1. Calls `on_failure` at most once, on the server's thread. Throws
  /// std::system_error.
  Server(Latencies latencies, std::function<void(const std::string&)> on_failure)
      : latencies_(std::move(latencies)), on_failure_(std::move(on_failure)) {}
  ~Server() { stop(); }

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

  void start() {
    accept();
    thread_ = std::thread([this] {
      try {
        io_.run();
      } catch (const std::exception& error) {
        fail(error.what());
      }
    });
  }

  /// Drops the connections and the due answers. Reports nothing more.
  void stop() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Under load, answers within this time go out together, which saves system calls.
  static constexpr std::chrono::microseconds kAnswerTogether{100};

  struct Answer {
    Clock::time_point due;
    Connection* connection;
    std::uint64_t id;
    friend bool operator>(const Answer& a, const Answer& b) { return a.due > b.due; }
  };

  void accept() {
    acceptor_.async_accept([this](const std::error_code& error, asio::ip::tcp::socket socket) {
      if (error) return fail("cannot accept a connection: " + explain(error));
      const std::size_t index = connections_.size();
      connections_.push_back(std::make_unique<Connection>(
          std::move(socket), [this, index](std::uint64_t id) { take_request(*connections_[index], id); },
          [this](const std::error_code& lost) { fail("lost a connection: " + explain(lost)); }));
      connections_.back()->start();
      accept();
    });
  }

  void take_request(Connection& connection, std::uint64_t id) {
    const std::optional<std::chrono::nanoseconds> latency = latencies_.next();
    if (!latency) return;
    answers_.push({Clock::now() + *latency, &connection, id});
    answer_at(answers_.top().due);
  }

  void answer_at(Clock::time_point when) {
    when = std::max(when, last_answered_ + kAnswerTogether);
    if (when >= next_answer_at_) return;
    next_answer_at_ = when;
    next_answer_.expires_at(when);
    next_answer_.async_wait([this](const std::error_code& replaced) {
      if (!replaced) answer_what_is_due();
    });
  }

  void answer_what_is_due() {
    last_answered_ = Clock::now();
    for (; !answers_.empty() && answers_.top().due <= last_answered_; answers_.pop()) {
      answers_.top().connection->send({answers_.top().id, {}});
    }
    next_answer_at_ = Clock::time_point::max();
    if (!answers_.empty()) answer_at(answers_.top().due);
  }

  void fail(const std::string& what) {
    io_.stop();
    on_failure_("server: " + what);
  }

  Latencies latencies_;
  const std::function<void(const std::string&)> on_failure_;
  asio::io_context io_{1};
  asio::ip::tcp::acceptor acceptor_{io_, {asio::ip::address_v4::loopback(), 0}};
  std::vector<std::unique_ptr<Connection>> connections_;

  // A heap and an Asio timer instead of a wheel: latencies are not rounded to ticks, and the measurement does not
  // depend on this library.
  std::priority_queue<Answer, std::vector<Answer>, std::greater<>> answers_;
  asio::steady_timer next_answer_{io_};
  Clock::time_point next_answer_at_ = Clock::time_point::max();
  Clock::time_point last_answered_;

  std::thread thread_;  // last: it uses the other members
};

}  // namespace rpc
