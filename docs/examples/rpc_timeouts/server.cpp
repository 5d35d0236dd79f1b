#include "server.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

namespace rpc {
namespace {

constexpr std::string_view kAnswerBody = "an answer of the size that a small record has, here 64 bytes....";
// Under load the answers of so much time go out together, which saves system calls.
constexpr std::chrono::microseconds kAnswerTogether(100);

}  // namespace

Server::Server(LatencySource latencies, std::function<void(const std::string&)> on_failure)
    : latencies_(std::move(latencies)),
      on_failure_(std::move(on_failure)),
      io_(1),
      acceptor_(io_, {asio::ip::address_v4::loopback(), 0}),
      port_(acceptor_.local_endpoint().port()),
      next_answer_(io_) {}

void Server::start() {
  accept();
  thread_ = std::thread([this] {
    try {
      io_.run();
    } catch (const std::exception& error) {
      fail(error.what());
    }
  });
}

void Server::stop() {
  io_.stop();
  if (thread_.joinable()) thread_.join();
  connections_.clear();
}

void Server::accept() {
  acceptor_.async_accept([this](const std::error_code& error, asio::ip::tcp::socket socket) {
    if (error) return fail("cannot accept a connection: " + explain(error));
    const std::size_t index = connections_.size();
    connections_.push_back(std::make_unique<Connection>(
        std::move(socket), [this, index](const Frame& request) { take_request(*connections_[index], request.id); },
        [this](const std::error_code& lost) { fail("lost a connection: " + explain(lost)); }));
    connections_.back()->start();
    accept();
  });
}

void Server::take_request(Connection& connection, std::uint64_t id) {
  const std::optional<std::chrono::nanoseconds> latency = latencies_.next();
  if (!latency) return;
  answers_.push({Clock::now() + *latency, &connection, id});
  answer_at(answers_.top().due);
}

void Server::answer_at(Clock::time_point when) {
  when = std::max(when, last_answered_ + kAnswerTogether);
  if (when >= next_answer_at_) return;
  next_answer_at_ = when;
  next_answer_.expires_at(when);
  next_answer_.async_wait([this](const std::error_code& replaced) {
    if (!replaced) answer_what_is_due();
  });
}

void Server::answer_what_is_due() {
  last_answered_ = Clock::now();
  for (; !answers_.empty() && answers_.top().due <= last_answered_; answers_.pop()) {
    answers_.top().connection->send(answers_.top().id, kAnswerBody);
  }
  next_answer_at_ = Clock::time_point::max();
  if (!answers_.empty()) answer_at(answers_.top().due);
}

void Server::fail(const std::string& what) {
  io_.stop();
  on_failure_("server: " + what);
}

}  // namespace rpc
