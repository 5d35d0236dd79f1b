#pragma once

#include <coroutine>

#include "common/common.h"
#include "common/detached.h"
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
  std::chrono::duration<double> load_time{0};  // the time in which new requests were sent
  common::Histogram answered_latency;
  common::Histogram timed_out_latency;
  common::Histogram lateness;  // of the timeout tasks
};

/// Keeps requests in flight, each with a timeout on one shared timer.
///
/// Each caller is a coroutine: it sends a request, waits for the answer or the timeout, and sends the next one. All
/// callers run on the thread of run(). The timeout tasks run on the worker of the timer and post to that thread.
/// Timeout::cancel() decides whether the answer or the timeout completes a request.
class Client {
 public:
  explicit Client(const Load& load) : load_(load), calls_(static_cast<std::size_t>(load.in_flight)) {}
  ~Client() {
    for (const Call& call : calls_) {
      if (call.caller) call.caller.destroy();
    }
  }

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

  /// Sends requests until the time is over or the program is interrupted, then waits for those in flight. Call it once.
  /// Throws std::runtime_error if a connection fails.
  Results run(hwt::Timer& timer) {
    started_ = Clock::now();
    for (auto& connection : connections_) connection->start();
    for (std::uint64_t slot = 0; slot < calls_.size(); ++slot) call_again_and_again(slot, timer);
    work_until(started_ + std::chrono::ceil<Clock::duration>(duration_), common::interrupted);
    sending_ = false;
    results_.load_time = Clock::now() - started_;
    results_.answered_under_load = results_.answered;
    work_until(Clock::now() + load_.timeout + kLostAfter, [this] { return in_flight() == 0; });
    results_.lost = in_flight();
    return results_;
  }

  /// Ends run() with this error. Any thread may call it.
  void fail(const std::string& what) {
    asio::post(io_, [what] { throw std::runtime_error(what); });
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Requests that are in flight for this long after the last timeout count as lost.
  static constexpr std::chrono::seconds kLostAfter{5};

  /// The current request of a caller. The caller awaits it.
  struct Call {
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) noexcept { caller = handle; }
    void await_resume() const noexcept {}

    std::uint64_t id = 0;
    Clock::time_point sent;
    hwt::Timeout timeout;
    std::coroutine_handle<> caller;           // null once it is completed
    std::optional<Clock::duration> lateness;  // of its timeout task; empty if it was answered
  };

  common::Detached call_again_and_again(std::uint64_t slot, hwt::Timer& timer) {
    Call& call = calls_[slot];
    call.id = slot;
    while (sending_) {
      send(call, timer);
      co_await call;
      record(call);
    }
    if (in_flight() == 0) io_.stop();
  }

  void send(Call& call, hwt::Timer& timer) {
    // Ids of one slot differ by the number of slots, so an answer to an earlier request is recognised.
    call.id += calls_.size();
    call.sent = Clock::now();
    // By deadline, because the clock was just read. The timer stores these captures without an allocation.
    const Clock::time_point due = call.sent + load_.timeout;
    call.timeout = timer.new_timeout([this, id = call.id, due] { time_out(id, due); }, due);
    connections_[call.id % connections_.size()]->send({call.id, {}});
    ++results_.requests;
  }

  void record(const Call& call) {
    if (!call.lateness) {
      ++results_.answered;
      return results_.answered_latency.record(Clock::now() - call.sent);
    }
    ++results_.timed_out;
    if (*call.lateness < Clock::duration::zero()) ++results_.early;
    results_.lateness.record(*call.lateness);
    results_.timed_out_latency.record(load_.timeout + *call.lateness);
  }

  void take_answer(std::uint64_t id) {
    Call& call = call_of(id);
    if (call.id == id && call.timeout.cancel()) return complete(id, std::nullopt);
    ++results_.late_answers;
  }

  /// Runs on the timer's worker.
  void time_out(std::uint64_t id, Clock::time_point due) {
    asio::post(io_, [this, id, lateness = Clock::now() - due] { complete(id, lateness); });
  }

  void complete(std::uint64_t id, std::optional<Clock::duration> lateness) {
    Call& call = call_of(id);
    if (call.id != id || !call.caller) {
      ++results_.doubled;
      return;
    }
    call.lateness = lateness;
    std::exchange(call.caller, nullptr).resume();
  }

  /// Runs handlers until `end` or until `done` returns true.
  template <class Done>
  void work_until(Clock::time_point end, const Done& done) {
    asio::steady_timer look(io_);
    for (Clock::time_point now = Clock::now(); now < end && !done(); now = Clock::now()) {
      common::show_progress([&] {
        return (sending_ ? "" : "ending: ") + common::in_seconds(now - started_) + " of " + common::text_of(duration_) +
               " | in flight " + common::text_of(in_flight()) + " | answered " + common::text_of(results_.answered) +
               " | timed out " + common::text_of(results_.timed_out) + " | late answers " +
               common::text_of(results_.late_answers);
      });
      look.expires_at(std::min(now + common::kLook, end));
      look.async_wait([this](const std::error_code&) { io_.stop(); });
      io_.restart();
      io_.run();
    }
  }

  std::int64_t in_flight() const { return results_.requests - results_.answered - results_.timed_out; }
  Call& call_of(std::uint64_t id) { return calls_[id % calls_.size()]; }

  const Load load_;
  const std::chrono::duration<double> duration_{load_.seconds};
  asio::io_context io_{1};
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Call> calls_;
  Clock::time_point started_;
  bool sending_ = true;
  Results results_;
};

}  // namespace rpc
