#pragma once

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>

#include "common/common.h"
#include "descriptor.h"
#include "hashed_wheel_timer/passive_wheel.h"

namespace idle {

struct Settings {
  std::size_t connections = 10'000;
  std::size_t active = 1'000;  // of them: never silent for long
  std::chrono::milliseconds limit{2000};
  std::chrono::milliseconds tick{10};
  std::chrono::milliseconds duration{6000};  // after the last connection
};

/// The bytes that the client sends.
enum class Kind : char { Quiet = 'q', Active = 'a' };

/// The server's counters.
struct Figures {
  std::size_t accepted = 0;
  std::size_t gone = 0;           // closed by the client
  std::size_t active_closed = 0;  // active, but closed as idle
  std::size_t overdue = 0;        // still open at the end, although idle
  std::vector<std::chrono::nanoseconds> idle_at_close;
  std::size_t open_at_end = 0;
  std::int64_t bytes = 0;
  std::int64_t wakeups = 0;
};

/// Closes connections that have been silent for too long, with one thread, one epoll and one wheel.
class Server {
 public:
  /// Listens on an ephemeral port of 127.0.0.1. Throws std::system_error.
  explicit Server(const Settings& settings) : settings_(settings), wheel_(settings.tick, now_) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    checked(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), "bind");
    checked(listen(listener_.get(), SOMAXCONN), "listen");
    checked(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
    port_ = ntohs(address.sin_port);
    watch(listener_.get());
    watch(stop_.get());
  }

  std::uint16_t port() const { return port_; }
  const Figures& figures() const { return figures_; }

  /// Serves until stop() is called, the program is interrupted or the duration is over. The duration starts when all
  /// connections are open. Throws std::runtime_error if they are not open within kConnectLimit.
  void run() {
    const Clock::time_point give_up = Clock::now() + kConnectLimit;
    std::optional<Clock::time_point> end;
    while (running_ && now_ < end.value_or(give_up) && !common::interrupted()) {
      const int ready = wait_until(std::min(end.value_or(give_up), now_ + common::kLook));
      ++figures_.wakeups;
      now_ = Clock::now();
      // Advances first, because schedule() counts from that time. If timeouts remain due, next_wakeup() is in the past
      // and epoll_wait() does not sleep.
      wheel_.advance(now_, kClosedAtOnce);
      for (int i = 0; i < ready; ++i) handle(events_[static_cast<std::size_t>(i)].data.fd);
      if (!end && figures_.accepted >= settings_.connections) end = now_ + settings_.duration;
      common::show_progress([&] {
        return (end ? common::in_seconds(*end - now_) + " to go" : "connecting") + " | accepted " +
               common::text_of(figures_.accepted) + " | closed, idle " +
               common::text_of(figures_.idle_at_close.size()) + " | bytes " + common::text_of(figures_.bytes);
      });
    }
    if (now_ >= give_up && !end) {
      throw std::runtime_error("only " + common::counted(figures_.accepted, "connection") + " came");
    }
    look_around();
  }

  /// Makes run() return. Any thread may call it.
  void stop() noexcept {
    // Fails only if the counter is full, and then the loop wakes up anyway.
    [[maybe_unused]] const int result = eventfd_write(stop_.get(), 1);
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Closing takes some microseconds each. Between batches the loop serves other connections.
  static constexpr std::size_t kClosedAtOnce = 500;
  // The limit for the client to open all connections.
  static constexpr std::chrono::seconds kConnectLimit{60};

  enum class Heard { Nothing, Something, End };

  /// A connection is its own timeout, so the wheel needs no map and no allocation.
  struct Connection : hwt::WheelNode {
    Connection(Server& its_server, Descriptor its_socket)
        : server(its_server), socket(std::move(its_socket)), last_heard(its_server.now_) {}
    void on_timeout() override { server.silent_for_too_long(*this); }

    Server& server;
    const Descriptor socket;
    Kind kind = Kind::Quiet;
    Clock::time_point last_heard;
  };

  void watch(int fd) {
    // Stores the descriptor, not a pointer, because advance() may close a connection that has a pending event. If a new
    // connection has that number, handle() may read a byte of it, and does not block.
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    checked(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
  }

  int wait_until(Clock::time_point end) {
    const Clock::time_point until = std::min(wheel_.next_wakeup().value_or(end), end);
    // Rounds up. Rounded down, the loop would spin for the last millisecond.
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(std::max(until - Clock::now(), Clock::duration(0)));
    const int ready =
        epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), static_cast<int>(wait.count()));
    return ready < 0 && errno == EINTR ? 0 : checked(ready, "epoll_wait");
  }

  void handle(int fd) {
    if (fd == listener_.get()) return accept_all();
    if (fd == stop_.get()) {
      running_ = false;
      return;
    }
    std::unique_ptr<Connection>& connection = connections_[static_cast<std::size_t>(fd)];
    if (!connection) return;
    switch (listen_to(*connection)) {
      case Heard::Something:
        wheel_.postpone(*connection, settings_.limit);  // a comparison and a store
        break;
      case Heard::End:
        ++figures_.gone;
        connection.reset();  // removes itself from the wheel
        break;
      case Heard::Nothing:
        break;
    }
  }

  void accept_all() {
    for (;;) {
      Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) return;
        if (errno == EINTR || errno == ECONNABORTED) continue;
        checked(-1, "accept4");
      }
      const auto fd = static_cast<std::size_t>(socket.get());
      watch(socket.get());
      if (connections_.size() <= fd) connections_.resize(fd + 1);
      connections_[fd] = std::make_unique<Connection>(*this, std::move(socket));
      wheel_.schedule(*connections_[fd], settings_.limit);
      ++figures_.accepted;
    }
  }

  /// Reads all available bytes.
  Heard listen_to(Connection& connection) {
    std::array<char, 256> bytes;
    for (Heard heard = Heard::Nothing;;) {
      const ssize_t count = recv(connection.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (count > 0) {
        heard = Heard::Something;
        connection.last_heard = now_;
        connection.kind = static_cast<Kind>(bytes[static_cast<std::size_t>(count) - 1]);
        figures_.bytes += count;
      } else if (count == 0 || (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)) {
        return Heard::End;
      } else if (errno != EINTR) {
        return heard;
      }
    }
  }

  void silent_for_too_long(Connection& connection) {
    // A delayed thread may have unread bytes of this connection.
    if (listen_to(connection) == Heard::Something) {
      wheel_.schedule(connection, settings_.limit);  // not postpone(): the node is out of the wheel
      return;
    }
    figures_.idle_at_close.push_back(now_ - connection.last_heard);
    if (connection.kind == Kind::Active) ++figures_.active_closed;
    connections_[static_cast<std::size_t>(connection.socket.get())].reset();
  }

  /// Closes the remaining idle connections and counts those that are overdue.
  void look_around() {
    now_ = Clock::now();
    wheel_.advance(now_);
    for (const auto& connection : connections_) {
      if (!connection) continue;
      ++figures_.open_at_end;
      if (now_ - connection->last_heard >= settings_.limit + settings_.tick) ++figures_.overdue;
    }
  }

  const Settings settings_;
  const Descriptor epoll_{checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")};
  const Descriptor listener_{checked(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket")};
  const Descriptor stop_{checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")};
  std::uint16_t port_ = 0;
  Clock::time_point now_ = Clock::now();  // the start of this turn of the loop, and the time of the wheel
  bool running_ = true;
  std::array<epoll_event, 256> events_{};
  Figures figures_;

  hwt::PassiveWheel wheel_;
  std::vector<std::unique_ptr<Connection>> connections_;  // by file descriptor
};

}  // namespace idle
