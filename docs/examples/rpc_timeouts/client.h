#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/standalone_asio.h"
#include "connection.h"
#include "hashed_wheel_timer/timer.h"
#include "histogram.h"

namespace rpc {

struct ClientOptions {
  int in_flight;
  int connections;
  std::chrono::nanoseconds timeout;
  std::chrono::nanoseconds duration;
  bool show_progress;
};

struct Results {
  std::int64_t requests = 0;
  std::int64_t answered = 0;
  std::int64_t timed_out = 0;
  std::int64_t late_answers = 0;  // their requests had timed out
  std::int64_t lost = 0;          // neither answered nor timed out
  std::int64_t doubled = 0;       // completed a second time
  std::int64_t early = 0;         // timed out before the timeout was over
  std::int64_t answered_under_load = 0;
  std::chrono::nanoseconds load_time{0};  // from the first request until no new ones were sent
  Histogram answered_latency;
  Histogram timed_out_latency;
  Histogram lateness;  // of the timeout tasks
};

/// Keeps so many requests in flight, each with a timeout on one shared timer.
///
/// Two threads meet here: the client's, which runs run() and all handlers, and the worker of the timer, which runs
/// time_out(). Which of the two completes a request is decided by Timeout::cancel().
class Client {
 public:
  explicit Client(const ClientOptions& options);

  /// Opens the connections to the port on 127.0.0.1. Throws std::runtime_error.
  void connect(std::uint16_t port);

  /// Sends requests until the duration is over or Ctrl-C, then waits for those in flight. Throws std::runtime_error
  /// when a connection fails.
  void run(hwt::Timer& timer);

  /// Ends run() with this error. From any thread.
  void fail(const std::string& what);

  /// Precondition: the timer has been stopped, so its worker no longer counts.
  Results results() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Request {
    std::atomic<std::uint64_t> open_id{0};  // 0 once completed
    std::uint64_t id = 0;                   // of the latest request in this slot; client's thread only, as all below
    Clock::time_point sent;
    hwt::Timeout timeout;
  };

  void send_request(std::uint64_t slot);
  void take_answer(std::uint64_t id);
  void time_out(std::uint64_t id, Clock::time_point due);  // on the timer's worker
  bool complete(std::uint64_t id);                         // from either thread
  void next_request(std::uint64_t slot);
  void stop_sending();
  void show_progress();

  Request& request_of(std::uint64_t id) { return requests_[id % requests_.size()]; }

  const ClientOptions options_;
  asio::io_context io_;
  asio::signal_set interrupts_;
  asio::steady_timer end_;
  asio::steady_timer progress_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Request> requests_;

  // Used by the client's thread.
  hwt::Timer* timer_ = nullptr;
  Clock::time_point started_;
  bool sending_ = false;
  std::string failure_;
  std::uint64_t in_flight_ = 0;
  Results counted_;

  // Used by the timer's worker; the atomic ones by both.
  Histogram timed_out_latency_;
  Histogram lateness_;
  std::int64_t early_ = 0;
  std::atomic<std::int64_t> timed_out_{0};
  std::atomic<std::int64_t> doubled_{0};
};

}  // namespace rpc
