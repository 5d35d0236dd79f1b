#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <thread>
#include <vector>

#include "common/standalone_asio.h"
#include "connection.h"
#include "latency_source.h"

namespace rpc {

/// Answers each request after the latency that its LatencySource gives, or never. Runs on a thread of its own.
class Server {
 public:
  /// Listens on an ephemeral port of 127.0.0.1. `on_failure` is called once, on the server's thread.
  /// Throws std::system_error.
  Server(LatencySource latencies, std::function<void(const std::string&)> on_failure);
  ~Server() { stop(); }

  std::uint16_t port() const { return port_; }
  void start();
  /// Drops the connections and the answers that are still due. Nothing is reported any more.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;

  struct Answer {
    Clock::time_point due;
    Connection* connection;
    std::uint64_t id;
    friend bool operator>(const Answer& a, const Answer& b) { return a.due > b.due; }
  };

  void accept();
  void take_request(Connection& connection, std::uint64_t id);
  void answer_at(Clock::time_point when);
  void answer_what_is_due();
  void fail(const std::string& what);

  LatencySource latencies_;
  std::function<void(const std::string&)> on_failure_;
  asio::io_context io_;
  asio::ip::tcp::acceptor acceptor_;
  std::uint16_t port_;
  std::vector<std::unique_ptr<Connection>> connections_;

  // A heap and one timer of Asio instead of a second wheel: latencies are not rounded to ticks, and what is measured
  // does not depend on the library that is shown here.
  std::priority_queue<Answer, std::vector<Answer>, std::greater<>> answers_;
  asio::steady_timer next_answer_;
  Clock::time_point next_answer_at_ = Clock::time_point::max();
  Clock::time_point last_answered_;

  std::thread thread_;  // last: it uses the rest
};

}  // namespace rpc
