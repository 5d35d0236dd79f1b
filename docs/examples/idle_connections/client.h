#pragma once

#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <random>

#include "common/common.h"
#include "descriptor.h"
#include "hashed_wheel_timer/passive_wheel.h"
#include "server.h"

namespace idle {

/// Opens the connections on its own thread and sends bytes on them: on the active ones until the end, on each other one
/// until a random moment.
class Client {
 public:
  /// Stops the server if it fails.
  Client(const Settings& settings, Server& server)
      : settings_(settings), port_(server.port()), thread_([this, &server](const std::stop_token& stop) {
          try {
            run(stop);
          } catch (...) {
            failure_ = std::current_exception();
            server.stop();
          }
        }) {}

  /// Joins the thread. Throws the exception that ended it.
  void stop() {
    thread_.request_stop();
    thread_.join();
    if (failure_) std::rethrow_exception(failure_);
  }

  /// After stop(): the longest silence of an active connection. It exceeds the limit if this thread was delayed.
  std::chrono::nanoseconds longest_silence() const { return longest_silence_; }

 private:
  using Clock = std::chrono::steady_clock;

  // The client sends due bytes after each batch, so that open connections do not fall silent.
  static constexpr std::size_t kConnectedAtOnce = 100;
  static constexpr std::chrono::milliseconds kLookForStop{20};

  /// The client's end of a connection. Its timeout is the next byte to send.
  struct Sender : hwt::WheelNode {
    Sender(hwt::PassiveWheel& its_wheel, Descriptor its_socket, Kind its_kind, std::chrono::nanoseconds its_interval,
           Clock::time_point its_end)
        : wheel(its_wheel), socket(std::move(its_socket)), kind(its_kind), interval(its_interval), quiet_from(its_end) {
      on_timeout();
    }

    void on_timeout() override {
      const Clock::time_point now = Clock::now();
      if (now >= quiet_from) return;
      const char byte = static_cast<char>(kind);
      longest_silence = std::max(longest_silence, now - last_sent);
      // An error means that the server closed the connection. One byte always fits.
      if (send(socket.get(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
      last_sent = now;
      wheel.schedule(*this, interval);
    }

    hwt::PassiveWheel& wheel;
    const Descriptor socket;
    const Kind kind;
    const std::chrono::nanoseconds interval;
    const Clock::time_point quiet_from;
    Clock::time_point last_sent = Clock::now();
    Clock::duration longest_silence{0};
  };

  void run(const std::stop_token& stop) {
    const std::chrono::nanoseconds interval = settings_.limit / 4;
    // Early enough for the server to close each quiet connection before the end.
    const auto last_quiet =
        std::max<std::chrono::nanoseconds>((settings_.duration - settings_.limit) / 2, Clock::duration(0));
    std::mt19937_64 random(1);
    std::uniform_int_distribution<std::int64_t> quiet_after(0, last_quiet.count());

    hwt::PassiveWheel wheel(std::chrono::milliseconds(1), Clock::now());
    std::vector<std::unique_ptr<Sender>> senders;
    while (!stop.stop_requested()) {
      wheel.advance(Clock::now());
      for (std::size_t i = 0; i < kConnectedAtOnce && senders.size() < settings_.connections; ++i) {
        const bool active = senders.size() < settings_.active;
        Descriptor socket = connect_to_server(stop);
        if (!socket) break;
        senders.push_back(std::make_unique<Sender>(
            wheel, std::move(socket), active ? Kind::Active : Kind::Quiet, interval,
            active ? Clock::time_point::max() : Clock::now() + std::chrono::nanoseconds(quiet_after(random))));
      }
      if (senders.size() < settings_.connections) continue;
      const Clock::time_point look = Clock::now() + kLookForStop;
      std::this_thread::sleep_until(std::min(wheel.next_wakeup().value_or(look), look));
    }
    for (const auto& sender : senders) {
      if (sender->kind != Kind::Active) continue;
      longest_silence_ = std::max({longest_silence_, sender->longest_silence, Clock::now() - sender->last_sent});
    }
  }

  /// Returns an empty descriptor if `stop` is requested.
  Descriptor connect_to_server(const std::stop_token& stop) const {
    Descriptor socket(checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    // connect() would wait for minutes while the server's backlog is full.
    const timeval wait{0, std::chrono::microseconds(kLookForStop).count()};
    checked(setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait), "setsockopt");
    const sockaddr_in address = loopback(port_);
    while (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0 && errno != EISCONN) {
      if (errno != EINPROGRESS && errno != EALREADY && errno != EINTR) checked(-1, "connect");
      if (stop.stop_requested()) return {};
    }
    return socket;
  }

  const Settings settings_;
  const std::uint16_t port_;
  std::exception_ptr failure_;
  Clock::duration longest_silence_{0};
  std::jthread thread_;  // last: it uses the other members
};

}  // namespace idle
