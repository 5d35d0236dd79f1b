#include "server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <stdexcept>
#include <string>

namespace idle {
namespace {

using namespace std::chrono_literals;

// Closing a connection takes some microseconds. In between others get their turn.
constexpr std::size_t kClosedAtOnce = 500;

// All must be connected by then; nothing but a machine that has stopped is that slow.
constexpr std::chrono::seconds kConnectLimit = 60s;

}  // namespace

Server::Server(const Options& options, int signals)
    : options_(options),
      signals_(signals),
      epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      listener_(checked(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket")),
      stop_(checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
      wheel_(options.tick, now_) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  checked(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), "bind");
  checked(listen(listener_.get(), SOMAXCONN), "listen");
  checked(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
  port_ = ntohs(address.sin_port);
  for (const int fd : {listener_.get(), stop_.get(), signals_}) watch(fd);
}

void Server::run() {
  const Clock::time_point give_up = Clock::now() + kConnectLimit;
  std::optional<Clock::time_point> end;
  while (running_ && now_ < end.value_or(give_up)) {
    const int ready = wait_until(end.value_or(give_up));
    ++figures_.wakeups;
    now_ = Clock::now();
    // First the time, so that what is scheduled below counts from it. What does not fit into this turn is due in the
    // next one: next_wakeup() is then in the past, and epoll_wait() does not sleep.
    wheel_.advance(now_, kClosedAtOnce);
    for (int i = 0; i < ready; ++i) handle(events_[static_cast<std::size_t>(i)].data.fd);
    if (!end && figures_.accepted >= options_.connections) end = now_ + options_.duration;
  }
  if (running_ && !end) throw std::runtime_error("only " + std::to_string(figures_.accepted) + " connections came");
  look_around();
}

void Server::stop() noexcept {
  // Nobody reads it any more if this fails.
  [[maybe_unused]] const int result = eventfd_write(stop_.get(), 1);
}

void Server::watch(int fd) {
  // The descriptor, not a pointer: advance() may have closed a connection of which an event is still in hand. If the
  // number belongs to a new one by now, all that happens is a look that finds nothing.
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  checked(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

int Server::wait_until(Clock::time_point end) {
  const Clock::time_point until = std::min(wheel_.next_wakeup().value_or(end), end);
  // Up to the next millisecond: rounded down, the loop would turn without a pause until the time has come.
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(std::max(until - Clock::now(), 0ns));
  const int ready = epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()),
                               static_cast<int>(milliseconds.count()));
  return ready < 0 && errno == EINTR ? 0 : checked(ready, "epoll_wait");
}

void Server::handle(int fd) {
  if (fd == listener_.get()) return accept_all();
  if (fd == stop_.get() || fd == signals_) {
    running_ = false;
    return;
  }
  std::unique_ptr<Connection>& connection = connections_[static_cast<std::size_t>(fd)];
  if (!connection) return;
  switch (connection->listen()) {
    case Connection::Heard::Something:
      wheel_.postpone(*connection, options_.limit);  // a comparison and a store, however often
      break;
    case Connection::Heard::End:
      ++figures_.gone;
      connection.reset();  // leaves the wheel by itself
      break;
    case Connection::Heard::Nothing:
      break;
  }
}

void Server::accept_all() {
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
    connections_[fd] = std::make_unique<Connection>(*this, std::move(socket), now_);
    wheel_.schedule(*connections_[fd], options_.limit);
    ++figures_.accepted;
  }
}

void Server::close_idle(Connection& connection) {
  figures_.idle_at_close.push_back(now_ - connection.last_heard());
  if (connection.kind() == Kind::Active) ++figures_.active_closed;
  connections_[static_cast<std::size_t>(connection.fd())].reset();
}

// At the end: whoever should have been closed is closed now, and who is left had better be in time.
void Server::look_around() {
  now_ = Clock::now();
  wheel_.advance(now_);
  for (const auto& connection : connections_) {
    if (!connection) continue;
    ++figures_.open_at_end;
    if (now_ - connection->last_heard() >= options_.limit + options_.tick) ++figures_.overdue;
  }
}

}  // namespace idle
