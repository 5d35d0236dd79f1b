#include "client.h"

#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "common/format.h"

namespace rpc {
namespace {

constexpr std::string_view kRequestBody = "a request of the size that a small query has, here 64 bytes.....";
constexpr std::chrono::milliseconds kProgressInterval(250);
// What is still in flight so long after the last timeout should have run counts as lost.
constexpr std::chrono::seconds kLostAfter(5);

}  // namespace

Client::Client(const ClientOptions& options)
    : options_(options),
      io_(1),
      interrupts_(io_, SIGINT, SIGTERM),
      end_(io_),
      progress_(io_),
      requests_(static_cast<std::size_t>(options.in_flight)) {}

void Client::connect(std::uint16_t port) {
  for (int i = 0; i < options_.connections; ++i) {
    asio::ip::tcp::socket socket(io_);
    std::error_code error;
    socket.connect({asio::ip::address_v4::loopback(), port}, error);
    if (error) {
      throw std::runtime_error("cannot open connection " + std::to_string(i + 1) + " of " +
                               std::to_string(options_.connections) + ": " + explain(error));
    }
    connections_.push_back(std::make_unique<Connection>(
        std::move(socket), [this](const Frame& answer) { take_answer(answer.id); },
        [this](const std::error_code& lost) { fail("lost a connection: " + explain(lost)); }));
  }
}

void Client::run(hwt::Timer& timer) {
  timer_ = &timer;
  sending_ = true;
  started_ = Clock::now();
  // After the first one the signals have their default effect again: a second Ctrl-C ends the program at once.
  interrupts_.async_wait([this](const std::error_code& removed, int) {
    if (!removed) stop_sending();
  });
  end_.expires_at(started_ + options_.duration);
  end_.async_wait([this](const std::error_code& cancelled) {
    if (!cancelled) stop_sending();
  });
  for (auto& connection : connections_) connection->start();
  for (std::uint64_t slot = 0; slot < requests_.size(); ++slot) send_request(slot);
  if (options_.show_progress) show_progress();
  io_.run();
  if (options_.show_progress) std::fputs("\r\033[K", stderr);
  if (!failure_.empty()) throw std::runtime_error(failure_);
}

void Client::send_request(std::uint64_t slot) {
  Request& request = requests_[slot];
  // Ids of one slot differ by the number of slots, so that an answer to an earlier request is recognised.
  request.id = request.id == 0 ? requests_.size() + slot : request.id + requests_.size();
  request.open_id.store(request.id, std::memory_order_relaxed);  // new_timeout() hands it to the worker
  request.sent = Clock::now();
  // These captures are just what a timeout holds without an allocation.
  request.timeout = timer_->new_timeout(
      [this, id = request.id, due = request.sent + options_.timeout] { time_out(id, due); }, options_.timeout);
  connections_[slot % connections_.size()]->send(request.id, kRequestBody);
  ++counted_.requests;
  ++in_flight_;
}

void Client::take_answer(std::uint64_t id) {
  Request& request = request_of(id);
  if (request.id != id || !request.timeout.cancel()) {
    ++counted_.late_answers;
    return;
  }
  if (!complete(id)) return;
  ++counted_.answered;
  counted_.answered_latency.record(Clock::now() - request.sent);
  next_request(id % requests_.size());
}

void Client::time_out(std::uint64_t id, Clock::time_point due) {
  const Clock::duration lateness = Clock::now() - due;
  if (!complete(id)) return;
  timed_out_.fetch_add(1, std::memory_order_relaxed);
  if (lateness < Clock::duration::zero()) ++early_;
  lateness_.record(lateness);
  timed_out_latency_.record(options_.timeout + lateness);
  asio::post(io_, [this, slot = id % requests_.size()] { next_request(slot); });
}

bool Client::complete(std::uint64_t id) {
  std::uint64_t expected = id;
  if (request_of(id).open_id.compare_exchange_strong(expected, 0, std::memory_order_relaxed)) return true;
  doubled_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void Client::next_request(std::uint64_t slot) {
  --in_flight_;
  if (sending_) {
    send_request(slot);
  } else if (in_flight_ == 0) {
    io_.stop();
  }
}

void Client::stop_sending() {
  if (!std::exchange(sending_, false)) return;
  counted_.load_time = Clock::now() - started_;
  counted_.answered_under_load = counted_.answered;
  std::error_code ignored;
  interrupts_.clear(ignored);
  end_.expires_after(options_.timeout + kLostAfter);
  end_.async_wait([this](const std::error_code& cancelled) {
    if (!cancelled) io_.stop();
  });
}

void Client::fail(const std::string& what) {
  asio::post(io_, [this, what] {
    if (failure_.empty()) failure_ = what;
    io_.stop();
  });
}

void Client::show_progress() {
  const std::chrono::duration<double> elapsed = Clock::now() - started_;
  const std::chrono::duration<double> duration = options_.duration;
  std::fprintf(stderr, "\r\033[K%s", sending_ ? "" : "ending: ");
  std::fprintf(stderr, "%.1f s of %.4g s | in flight %s | answered %s | timed out %s | late answers %s",
               elapsed.count(), duration.count(), common::with_thousands(static_cast<std::int64_t>(in_flight_)).c_str(),
               common::with_thousands(counted_.answered).c_str(),
               common::with_thousands(timed_out_.load(std::memory_order_relaxed)).c_str(),
               common::with_thousands(counted_.late_answers).c_str());
  std::fflush(stderr);
  progress_.expires_after(kProgressInterval);
  progress_.async_wait([this](const std::error_code& cancelled) {
    if (!cancelled) show_progress();
  });
}

Results Client::results() const {
  Results results = counted_;
  results.timed_out = timed_out_.load(std::memory_order_relaxed);
  results.doubled = doubled_.load(std::memory_order_relaxed);
  results.early = early_;
  results.lost = results.requests - results.answered - results.timed_out;
  results.timed_out_latency = timed_out_latency_;
  results.lateness = lateness_;
  return results;
}

}  // namespace rpc
