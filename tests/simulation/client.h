#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "hashed_wheel_timer/deadline.h"
#include "hashed_wheel_timer/keyed_timer.h"
#include "hashed_wheel_timer/repeated_timer.h"
#include "hashed_wheel_timer/stop_after.h"
#include "tests/simulation/network.h"
#include "tests/simulation/watched_scope.h"
#include "tests/simulation/watched_timer.h"
#include "tests/simulation/world.h"

namespace hwt::simulation {

enum class Outcome { Answered, TimedOut, Cancelled, ShutDown };

/// An RPC client of some connections. A request has a deadline, which the server may put off. If the answer is slow, it
/// is sent again on another connection. The first answer counts, and the other request is cancelled. Each attempt has a
/// limit, which ends with its connection. Connections are made within a limit, send heartbeats, are given up when
/// nothing comes back, and are made again after a while that doubles, with jitter. Another step may come at each
/// World::pause(), so the client looks at its state again afterwards.
class Client {
 public:
  using Ended = std::function<void(std::uint64_t request, Outcome)>;

  Client(World& world, WatchedTimer& timer, Network& network, int connections, Ended ended);
  ~Client();

  // What its user does.
  void call(std::uint64_t request, nanoseconds timeout);
  void cancel(std::uint64_t request);
  /// Ends all connections, because the timer is about to go or has ended. Requests end when their tasks are told.
  void let_go();

  // The events of the network.
  void connected(int connection);
  void broken(int connection);
  void answered(std::uint64_t request, int connection);
  void in_progress(std::uint64_t request, nanoseconds timeout);
  void alive(int connection);

  bool has(int connection) const { return static_cast<std::size_t>(connection) < connections_.size(); }
  bool is_up(int connection) const { return connections_[static_cast<std::size_t>(connection)].state == State::Up; }
  bool is_open(std::uint64_t request) const { return open_.contains(request); }
  const std::map<std::uint64_t, std::shared_ptr<struct Request>>& open() const { return open_; }

  /// Returns the number of its pending timeouts that the WatchedTimer does not know.
  std::int64_t pending() const;
  void check() const;

 private:
  enum class State { Down, Dialing, Up };
  struct Connection {
    State state = State::Down;
    int failures = 0;
    std::optional<StopAfter> dialing;
    bool limited = false;  // `dialing` is pending
    std::optional<RepeatedTimer> heartbeat;
    bool beating = false;
    bool in_beat = false;
    TimePoint next_beat{};
    WatchedTimer::Handle reconnect;
    std::optional<WatchedScope> limits;     // of the attempts; while it is up
    std::optional<std::uint64_t> idle_due;  // there is a value in idle_, due at this grid point
    TimePoint idle_deadline{};
  };
  /// The value of a connection in the KeyedTimer. Its memory shows a sanitizer a value that is lost or destroyed twice.
  struct Link {
    std::unique_ptr<int> memory = std::make_unique<int>(1);
  };

  Connection& at(int connection) { return connections_[static_cast<std::size_t>(connection)]; }
  void dial(int connection);
  void dial_stopped(int connection);
  void down(int connection);
  void unlimit(Connection& connection);
  void beat(int connection);
  void expired(int connection);
  void keep_alive(int connection);
  void stop_beating(int connection);
  void send(const std::shared_ptr<Request>& request);
  void limit(const std::shared_ptr<Request>& request);
  void unlimit(const std::shared_ptr<Request>& request, int connection);
  void give_up(const std::shared_ptr<Request>& request, int connection);
  void hedge(const std::shared_ptr<Request>& request);
  void finish(const std::shared_ptr<Request>& request, Outcome outcome);

  World& world_;
  WatchedTimer& timer_;
  Network& network_;
  const Ended ended_;
  bool shut_down_ = false;
  std::map<std::uint64_t, std::shared_ptr<Request>> open_;
  std::deque<Connection> connections_;
  std::optional<KeyedTimer<int, Link>> idle_;
};

/// One call; it lives until its timeouts have let go of it.
struct Request {
  struct Attempt {
    int connection;
    std::uint64_t message;
    WatchedScope::Member limit{};
  };

  explicit Request(std::uint64_t id) : number(id) { ++living; }
  ~Request() { --living; }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  const std::uint64_t number;
  bool over = false;
  Deadline budget;
  std::vector<Attempt> attempts;  // on their way
  WatchedTimer::Handle deadline;
  WatchedTimer::Handle hedge;

  static inline std::int64_t living = 0;
};

}  // namespace hwt::simulation
