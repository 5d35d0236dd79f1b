#pragma once

#include <sys/epoll.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "connection.h"
#include "descriptor.h"
#include "hashed_wheel_timer/passive_wheel.h"
#include "options.h"

namespace idle {

/// What the server has seen.
struct ServerFigures {
  std::size_t accepted = 0;
  std::size_t gone = 0;           // closed by the client
  std::size_t active_closed = 0;  // closed for being idle, although they had said that they are active
  std::size_t overdue = 0;        // open at the end, although idle for too long
  std::vector<std::chrono::nanoseconds> idle_at_close;
  std::size_t open_at_end = 0;
  std::int64_t bytes = 0;
  std::int64_t wakeups = 0;
};

/// Closes connections that have been silent for too long: one thread, one epoll, one wheel.
class Server {
 public:
  /// Listens on an ephemeral port of 127.0.0.1. `signals` is readable when the user wants to end. Throws
  /// std::system_error.
  Server(const Options& options, int signals);

  std::uint16_t port() const { return port_; }

  /// Serves until the time is over, which begins when all connections are there.
  void run();
  /// Makes run() return. From any thread.
  void stop() noexcept;

  const ServerFigures& figures() const { return figures_; }

 private:
  friend class Connection;
  using Clock = std::chrono::steady_clock;

  void watch(int fd);
  int wait_until(Clock::time_point end);
  void handle(int fd);
  void accept_all();
  void close_idle(Connection& connection);
  void look_around();

  const Options options_;
  const int signals_;
  Descriptor epoll_;
  Descriptor listener_;
  Descriptor stop_;
  std::uint16_t port_ = 0;
  Clock::time_point now_ = Clock::now();  // of the present turn of the loop: the time of the wheel
  bool running_ = true;
  std::array<epoll_event, 256> events_{};
  ServerFigures figures_;

  hwt::PassiveWheel wheel_;
  std::vector<std::unique_ptr<Connection>> connections_;  // by file descriptor
};

}  // namespace idle
