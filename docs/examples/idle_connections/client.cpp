#include "client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <utility>

#include "connection.h"
#include "descriptor.h"
#include "hashed_wheel_timer/passive_wheel.h"

namespace idle {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// So many between two looks at the clock, so that those which are connected already do not fall silent meanwhile.
constexpr std::size_t kConnectedAtOnce = 100;

// Nothing when it has to stop first.
Descriptor connect_to(std::uint16_t port, const std::stop_token& stop) {
  Descriptor socket(checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  // A server that accepts no more and whose backlog is full would let connect() wait for minutes.
  const timeval look_for_stop{0, 20'000};
  checked(setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &look_for_stop, sizeof look_for_stop), "setsockopt");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  while (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0 && errno != EISCONN) {
    if (errno != EINPROGRESS && errno != EALREADY && errno != EINTR) checked(-1, "connect");
    if (stop.stop_requested()) return {};
  }
  return socket;
}

}  // namespace

/// The client's end of a connection: the timeouts of its wheel are the next bytes to send.
class Client::Sender : public hwt::WheelNode {
 public:
  Sender(hwt::PassiveWheel& wheel, Descriptor socket, Kind kind, std::chrono::nanoseconds interval,
         Clock::time_point quiet_from)
      : wheel_(wheel), socket_(std::move(socket)), kind_(kind), interval_(interval), quiet_from_(quiet_from) {
    send_byte();
  }

  /// The longest pause, the one since the last byte included.
  std::chrono::nanoseconds longest_silence() const { return std::max(longest_silence_, Clock::now() - last_sent_); }
  Kind kind() const { return kind_; }

 private:
  void on_timeout() override { send_byte(); }

  void send_byte() {
    const Clock::time_point now = Clock::now();
    if (now >= quiet_from_) return;
    const char byte = static_cast<char>(kind_);
    longest_silence_ = std::max(longest_silence_, now - last_sent_);
    // Whether the server has closed it is the server's to tell; one byte always fits.
    if (send(socket_.get(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
    last_sent_ = now;
    wheel_.schedule(*this, interval_);
  }

  hwt::PassiveWheel& wheel_;
  Descriptor socket_;
  const Kind kind_;
  const std::chrono::nanoseconds interval_;
  const Clock::time_point quiet_from_;
  Clock::time_point last_sent_ = Clock::now();
  std::chrono::nanoseconds longest_silence_{0};
};

Client::Client(const Options& options, std::uint16_t port, std::function<void()> on_failure)
    : options_(options), port_(port), on_failure_(std::move(on_failure)), thread_([this](const std::stop_token& stop) {
        try {
          run(stop);
        } catch (...) {
          failure_ = std::current_exception();
          on_failure_();
        }
      }) {}

Client::~Client() = default;

void Client::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Client::run(const std::stop_token& stop) {
  const std::chrono::nanoseconds interval = options_.limit / 4;
  const std::chrono::nanoseconds last_quiet = std::max((options_.duration - options_.limit) / 2, 0ms);
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::int64_t> quiet_after(0, std::chrono::nanoseconds(last_quiet).count());

  hwt::PassiveWheel wheel(1ms, Clock::now());
  std::vector<std::unique_ptr<Sender>> senders;
  while (!stop.stop_requested()) {
    wheel.advance(Clock::now());
    for (std::size_t i = 0; i < kConnectedAtOnce && senders.size() < options_.connections; ++i) {
      const bool active = senders.size() < options_.active;
      Descriptor socket = connect_to(port_, stop);
      if (!socket) break;
      senders.push_back(std::make_unique<Sender>(
          wheel, std::move(socket), active ? Kind::Active : Kind::Quiet, interval,
          active ? Clock::time_point::max() : Clock::now() + std::chrono::nanoseconds(quiet_after(random))));
    }
    if (senders.size() < options_.connections) continue;
    const Clock::time_point look = Clock::now() + 20ms;  // for stop
    std::this_thread::sleep_until(std::min(wheel.next_wakeup().value_or(look), look));
  }
  for (const auto& sender : senders) {
    if (sender->kind() == Kind::Active) longest_silence_ = std::max(longest_silence_, sender->longest_silence());
  }
}

}  // namespace idle
