#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include "hashed_wheel_timer/keyed_timer.h"
#include "script.h"

namespace pool {

/// How a run has ended.
struct Results {
  std::int64_t connections = 0;
  std::int64_t heartbeats = 0;
  std::int64_t expired = 0;
  std::int64_t connected = 0;  // at the end
  // From the last heartbeat to the expiry.
  std::chrono::nanoseconds earliest{std::chrono::nanoseconds::max()};
  std::chrono::nanoseconds latest{0};
  // What must not be.
  std::int64_t early = 0;
  std::int64_t late = 0;     // more than a tick
  std::int64_t overdue = 0;  // should have expired and has not
  std::int64_t lost = 0;     // neither expired nor connected, or overdue for ever
  std::int64_t wrong = 0;    // expired and had not gone silent

  std::chrono::nanoseconds simulated{0};
  std::chrono::nanoseconds wall{0};
  std::chrono::nanoseconds cpu{0};
};

/// The connections, each in one KeyedTimer under its id from connect() until it expires, and what they tell. A
/// connection is used by one thread at a time.
class ConnectionPool {
 public:
  ConnectionPool(hwt::Timer& timer, std::int64_t connections, const Times& times, const Script& script);

  void connect(std::uint64_t id);
  /// False: the connection has expired.
  bool heartbeat(std::uint64_t id);
  /// Sends the heartbeat that the script has for the connection as its number `number`, from 0. Returns how many: 1 or
  /// 0.
  std::int64_t follow_script(std::uint64_t id, std::uint64_t number);

  std::uint64_t size() const noexcept { return connections_.size(); }
  hwt::Timer& timer() noexcept { return timer_; }

  /// How many have not expired yet that should have done so by `time` of the timer's clock. When no heartbeats come.
  std::int64_t overdue_since(std::chrono::nanoseconds time) const;
  std::chrono::nanoseconds now() const { return timer_.now().time_since_epoch(); }

  /// Closes all connections. Precondition: nobody uses the pool any more.
  Results close();

 private:
  struct Connection {
    /// By the timer's clock. Written by who sends the heartbeats, read by who runs on_expire: so it is noted only after
    /// move() has said that there will be a next expiry to read it.
    std::atomic<std::int64_t> last_heartbeat{0};
  };
  using Idle = hwt::KeyedTimer<std::uint64_t, Connection*>;

  void expire(std::uint64_t id, const Connection& connection);
  std::chrono::nanoseconds silence_of(const Connection& connection) const {
    return now() - std::chrono::nanoseconds(connection.last_heartbeat.load(std::memory_order_relaxed));
  }

  hwt::Timer& timer_;
  const Times times_;
  const Script script_;
  std::vector<Connection> connections_;
  std::mutex mutex_;
  Results results_;  // guarded by mutex_
  Idle idle_;        // last: it uses the others
};

}  // namespace pool
