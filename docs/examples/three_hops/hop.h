#pragma once

#include <deque>
#include <random>

#include "common/common.h"
#include "common/standalone_asio.h"
#include "hashed_wheel_timer/asio.h"
#include "hashed_wheel_timer/deadline.h"
#include "ledger.h"

namespace three_hops {

using asio::ip::tcp;
using Failure = asio::error_code;

/// Shared by all parts; one thread uses them.
struct World {
  explicit World(const Settings& its_settings) : settings(its_settings) {}

  const Settings& settings;
  asio::io_context loop;
  hwt::net::LoopTimer timer{loop.get_executor(), settings.tick};
  Ledger ledger;
  std::mt19937_64 random{1};
};

/// Called at the end of a coroutine: its exception leaves the loop.
inline constexpr auto kRethrow = [](const std::exception_ptr& failure) {
  if (failure) std::rethrow_exception(failure);
};

/// Calls a hop over a connection that is made when it is needed.
class Link {
 public:
  Link(World& world, tcp::endpoint hop) : world_(world), hop_(std::move(hop)) {}

  /// Returns whether the answer came in time. The rest of the budget goes with the request.
  asio::awaitable<bool> call(std::size_t request, hwt::Deadline deadline) {
    Failure failure;
    const auto limited = [&] {
      return hwt::net::cancel_after(world_.timer, deadline, asio::redirect_error(asio::use_awaitable, failure));
    };
    char answer = 0;
    if (!socket_.is_open()) co_await socket_.async_connect(hop_, limited());
    if (!failure) {
      const auto now = world_.timer.now();
      const std::string line = std::to_string(request) + ' ' + deadline.to_grpc_timeout(now) + '\n';
      world_.ledger.sent(request, now);
      co_await asio::async_write(socket_, asio::buffer(line), limited());
    }
    if (!failure) co_await asio::async_read(socket_, asio::buffer(&answer, 1), limited());
    // An answer that comes later must not be taken for the next one.
    if (failure) socket_ = tcp::socket(world_.loop);
    co_return !failure && answer == 'y';
  }

 private:
  World& world_;
  const tcp::endpoint hop_;
  tcp::socket socket_{world_.loop};
};

/// The workers of a hop, and the requests that wait for one.
class Workers {
 public:
  explicit Workers(World& world) : world_(world), free_(world.settings.workers) {}

  /// Waits for a worker, until the budget is used up. Returns whether there is one.
  asio::awaitable<bool> take(hwt::Deadline deadline) {
    if (free_ != 0) {
      --free_;
      co_return true;
    }
    hwt::net::WheelTimer turn(world_.loop, world_.timer);
    turn.expires_at(deadline);
    waiting_.push_back(&turn);
    Failure cancelled;
    co_await turn.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    if (cancelled) co_return true;  // by give_back(), which passes its worker on
    std::erase(waiting_, &turn);
    co_return false;
  }

  void give_back() {
    while (!waiting_.empty()) {
      hwt::net::WheelTimer& next = *waiting_.front();
      waiting_.pop_front();
      if (next.cancel() != 0) return;  // otherwise its budget is used up
    }
    ++free_;
  }

 private:
  World& world_;
  std::uint64_t free_;
  std::deque<hwt::net::WheelTimer*> waiting_;
};

/// A server that works for each request, and then calls the next hop if there is one.
class Hop {
 public:
  Hop(World& world, Ledger::Hop& counts, std::optional<tcp::endpoint> next)
      : world_(world), counts_(counts), next_(std::move(next)) {
    asio::co_spawn(world_.loop, accept(), kRethrow);
  }

  tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }
  void stop() { acceptor_.close(); }

 private:
  asio::awaitable<void> accept() {
    for (;;) {
      Failure failure;
      tcp::socket socket = co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, failure));
      if (failure == asio::error::operation_aborted) co_return;
      if (failure) throw std::system_error(failure, "accept");
      asio::co_spawn(world_.loop, serve(std::move(socket)), kRethrow);
    }
  }

  /// A connection, until its other end closes it.
  asio::awaitable<void> serve(tcp::socket socket) {
    std::optional<Link> next;
    if (next_) next.emplace(world_, *next_);
    std::string received;
    for (;;) {
      Failure failure;
      const std::size_t size = co_await asio::async_read_until(socket, asio::dynamic_buffer(received), '\n',
                                                               asio::redirect_error(asio::use_awaitable, failure));
      if (failure) co_return;
      const std::size_t space = received.find(' ');
      const std::size_t request = std::stoul(received.substr(0, space));
      const std::string budget = received.substr(space + 1, size - space - 2);
      received.erase(0, size);
      const bool done = co_await handle(request, budget, next);
      co_await asio::async_write(socket, asio::buffer(done ? "y" : "n", 1),
                                 asio::redirect_error(asio::use_awaitable, failure));
      if (failure) co_return;
    }
  }

  asio::awaitable<bool> handle(std::size_t request, const std::string& budget, std::optional<Link>& next) {
    const hwt::Deadline deadline = hwt::Deadline::from_grpc_timeout(budget, world_.timer.now());
    world_.ledger.arrived(request, counts_, deadline, world_.timer.now());
    const auto work = std::chrono::nanoseconds(work_(world_.random));
    const bool has_worker = co_await workers_.take(deadline);
    const auto now = world_.timer.now();
    if (!has_worker || deadline.expired(now)) {
      if (has_worker) workers_.give_back();
      world_.ledger.not_started(counts_, work);
      co_return false;
    }
    world_.ledger.started(request, counts_, now);
    co_await hwt::net::async_wait(world_.timer, world_.loop.get_executor(), min(deadline, hwt::Deadline::in(work, now)),
                                  asio::use_awaitable);
    workers_.give_back();
    if (deadline.expired(world_.timer.now())) {
      ++counts_.stopped;
      co_return false;
    }
    if (!next) co_return true;
    co_return co_await next->call(request, deadline);
  }

  World& world_;
  Ledger::Hop& counts_;
  const std::optional<tcp::endpoint> next_;
  Workers workers_{world_};
  std::uniform_int_distribution<std::int64_t> work_{0, 2 * std::chrono::nanoseconds(world_.settings.work).count()};
  tcp::acceptor acceptor_{world_.loop, {asio::ip::address_v4::loopback(), 0}};
};

}  // namespace three_hops
