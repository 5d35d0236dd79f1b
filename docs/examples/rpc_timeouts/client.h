#pragma once

#include <atomic>

#include "common/common.h"
#include "common/histogram.h"
#include "connection.h"
#include "hashed_wheel_timer/timer.h"

namespace rpc {

struct Load {
  int in_flight = 2000;
  int connections = 16;
  std::chrono::milliseconds timeout{250};
  double seconds = 10;
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
  std::chrono::duration<double> load_time{0};  // from the first request until no new ones were sent
  common::Histogram answered_latency;
  common::Histogram timed_out_latency;
  common::Histogram lateness;  // of the timeout tasks
};

/// Keeps so many requests in flight, each with a timeout on one shared timer.
///
/// Two threads meet here: the client's, which runs run() and all handlers, and the worker of the timer, which runs
/// time_out(). Which of the two completes a request is decided by Timeout::cancel().
class Client {
 public:
  explicit Client(const Load& load) : load_(load), requests_(static_cast<std::size_t>(load.in_flight)) {}

  /// Opens the connections to the port on 127.0.0.1. Throws std::runtime_error.
  void connect(std::uint16_t port) {
    for (int i = 1; i <= load_.connections; ++i) {
      asio::ip::tcp::socket socket(io_);
      std::error_code error;
      socket.connect({asio::ip::address_v4::loopback(), port}, error);
      if (error) {
        throw std::runtime_error("cannot open connection " + common::text_of(i) + " of " +
                                 common::text_of(load_.connections) + ": " + explain(error));
      }
      connections_.push_back(std::make_unique<Connection>(
          std::move(socket), [this](std::uint64_t id) { take_answer(id); },
          [this](const std::error_code& lost) { fail("lost a connection: " + explain(lost)); }));
    }
  }

  /// Sends requests until the time is over or the program is interrupted, then waits for those in flight. Throws
  /// std::runtime_error when a connection fails.
  void run(hwt::Timer& timer) {
    timer_ = &timer;
    started_ = Clock::now();
    for (auto& connection : connections_) connection->start();
    for (std::uint64_t slot = 0; slot < requests_.size(); ++slot) send_request(slot);
    look();
    io_.run();
    if (!failure_.empty()) throw std::runtime_error(failure_);
  }

  /// Ends run() with this error. From any thread.
  void fail(const std::string& what) {
    asio::post(io_, [this, what] {
      if (failure_.empty()) failure_ = what;
      io_.stop();
    });
  }

  /// Precondition: the timer has been stopped, so its worker no longer counts.
  Results results() const {
    Results results = results_;
    results.timed_out = timed_out_;
    results.doubled = doubled_;
    results.lost = results.requests - results.answered - results.timed_out;
    return results;
  }

 private:
  using Clock = std::chrono::steady_clock;

  // What is still in flight so long after the last timeout should have run counts as lost.
  static constexpr std::chrono::seconds kLostAfter{5};

  struct Request {
    std::atomic<std::uint64_t> open_id{0};  // 0 once completed
    std::uint64_t id = 0;                   // of the latest request in this slot; client's thread only, as all below
    Clock::time_point sent;
    hwt::Timeout timeout;
  };

  void send_request(std::uint64_t slot) {
    Request& request = requests_[slot];
    // Ids of one slot differ by the number of slots, so that an answer to an earlier request is recognised.
    request.id = request.id == 0 ? requests_.size() + slot : request.id + requests_.size();
    request.open_id.store(request.id, std::memory_order_relaxed);  // new_timeout_at() hands it to the worker
    request.sent = Clock::now();
    // The clock was read just now: by its deadline the timeout costs half as much as by a delay. These captures are
    // just what it holds without an allocation.
    const Clock::time_point due = request.sent + load_.timeout;
    request.timeout = timer_->new_timeout_at([this, id = request.id, due] { time_out(id, due); }, due);
    connections_[slot % connections_.size()]->send({request.id, {}});
    ++results_.requests;
    ++in_flight_;
  }

  void take_answer(std::uint64_t id) {
    Request& request = request_of(id);
    if (request.id != id || !request.timeout.cancel()) {
      ++results_.late_answers;
      return;
    }
    if (!complete(id)) return;
    ++results_.answered;
    results_.answered_latency.record(Clock::now() - request.sent);
    next_request(id % requests_.size());
  }

  /// On the timer's worker.
  void time_out(std::uint64_t id, Clock::time_point due) {
    const Clock::duration lateness = Clock::now() - due;
    if (!complete(id)) return;
    timed_out_.fetch_add(1, std::memory_order_relaxed);
    if (lateness < Clock::duration::zero()) ++results_.early;
    results_.lateness.record(lateness);
    results_.timed_out_latency.record(load_.timeout + lateness);
    asio::post(io_, [this, slot = id % requests_.size()] { next_request(slot); });
  }

  /// From either thread.
  bool complete(std::uint64_t id) {
    std::uint64_t expected = id;
    if (request_of(id).open_id.compare_exchange_strong(expected, 0, std::memory_order_relaxed)) return true;
    doubled_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  void next_request(std::uint64_t slot) {
    --in_flight_;
    if (sending_) {
      send_request(slot);
    } else if (in_flight_ == 0) {
      io_.stop();
    }
  }

  void look() {
    const Clock::time_point now = Clock::now();
    const std::chrono::duration<double> duration(load_.seconds);
    const std::chrono::duration<double> elapsed = now - started_;
    if (sending_ && (elapsed >= duration || common::interrupted())) {
      sending_ = false;
      results_.load_time = elapsed;
      results_.answered_under_load = results_.answered;
      give_up_ = now + load_.timeout + kLostAfter;
    }
    if (now >= give_up_) return io_.stop();
    common::show_progress([&] {
      return (sending_ ? "" : "ending: ") + common::in_seconds(elapsed) + " of " + common::text_of(duration) +
             " | in flight " + common::text_of(in_flight_) + " | answered " + common::text_of(results_.answered) +
             " | timed out " + common::text_of(timed_out_.load()) + " | late answers " +
             common::text_of(results_.late_answers);
    });
    look_.expires_at(
        std::min(now + common::kLook, sending_ ? started_ + std::chrono::ceil<Clock::duration>(duration) : give_up_));
    look_.async_wait([this](const std::error_code&) { look(); });
  }

  Request& request_of(std::uint64_t id) { return requests_[id % requests_.size()]; }

  const Load load_;
  asio::io_context io_{1};
  asio::steady_timer look_{io_};
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Request> requests_;

  // Used by the client's thread.
  hwt::Timer* timer_ = nullptr;
  Clock::time_point started_;
  Clock::time_point give_up_ = Clock::time_point::max();
  bool sending_ = true;
  std::string failure_;
  std::uint64_t in_flight_ = 0;
  Results results_;  // but what time_out() counts: that is the worker's

  // Used by both threads.
  std::atomic<std::int64_t> timed_out_{0};
  std::atomic<std::int64_t> doubled_{0};
};

}  // namespace rpc
