#pragma once

#include <atomic>
#include <limits>

#include "common/common.h"
#include "hashed_wheel_timer/keyed_timer.h"

namespace pool {

struct Times {
  std::chrono::nanoseconds heartbeat;
  std::chrono::nanoseconds expiry;
  std::chrono::nanoseconds tick;
  std::chrono::nanoseconds duration;
};

/// Decides which connections go silent, and after how many heartbeats.
class Script {
 public:
  Script(double silent, std::uint64_t seed, const Times& times)
      : silent_(silent), seed_(seed), heartbeats_(static_cast<std::uint64_t>(times.duration / times.heartbeat) + 1) {}

  static constexpr std::uint64_t kForEver = std::numeric_limits<std::uint64_t>::max();

  /// Returns the number of heartbeats of a connection: at random within the duration, or kForEver.
  std::uint64_t heartbeats_of(std::uint64_t id) const noexcept {
    const std::uint64_t random = mixed(id ^ (seed_ << 32));
    if (static_cast<double>(random >> 11) * 0x1p-53 >= silent_) return kForEver;
    return mixed(random) % heartbeats_;
  }

 private:
  // splitmix64, which gives the same numbers on every machine.
  static std::uint64_t mixed(std::uint64_t x) noexcept {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  double silent_;
  std::uint64_t seed_;
  std::uint64_t heartbeats_;
};

/// The results of a run.
struct Results {
  std::int64_t heartbeats = 0;
  std::int64_t expired = 0;
  std::int64_t connected = 0;  // at the end
  // Times from the last heartbeat to the expiry.
  std::chrono::nanoseconds earliest{std::chrono::nanoseconds::max()};
  std::chrono::nanoseconds latest{0};
  // Errors.
  std::int64_t early = 0;
  std::int64_t late = 0;     // more than a tick
  std::int64_t overdue = 0;  // should have expired and has not
  std::int64_t wrong = 0;    // expired while it sent heartbeats
  std::int64_t lost = 0;     // neither expired nor connected, or overdue at the end
};

/// Connections in a KeyedTimer, each under its id until it expires. At most one thread at a time uses a connection.
class ConnectionPool {
 public:
  ConnectionPool(hwt::Timer& timer, std::size_t connections, const Times& times, const Script& script)
      : timer_(timer),
        times_(times),
        script_(script),
        connections_(connections),
        idle_(timer, [this](std::uint64_t id, Connection*& connection) { expire(id, *connection); }) {
    for (std::uint64_t id = 0; id < size(); ++id) connect(id);
  }

  std::uint64_t size() const noexcept { return connections_.size(); }
  std::chrono::nanoseconds now() const { return timer_.now().time_since_epoch(); }

  /// Sends heartbeat `number` (from 0), unless the connection is silent by then. Returns how many were sent: 0 or 1.
  std::int64_t follow_script(std::uint64_t id, std::uint64_t number) {
    return number < script_.heartbeats_of(id) && heartbeat(id) ? 1 : 0;
  }

  /// Returns the number of connections that should have expired by `time` of the timer's clock. Precondition: no thread
  /// sends heartbeats meanwhile.
  std::int64_t overdue_since(std::chrono::nanoseconds time) const {
    std::int64_t overdue = 0;
    for (std::uint64_t id = 0; id < size(); ++id) {
      if (silence_of(connections_[id], time) > times_.expiry + times_.tick && idle_.contains(id)) ++overdue;
    }
    return overdue;
  }

  /// Closes all connections. Precondition: no thread uses the pool.
  Results close() {
    const auto remaining = idle_.stop();
    const std::lock_guard lock(mutex_);
    Results results = results_;
    results.connected = static_cast<std::int64_t>(remaining.size());
    results.lost = static_cast<std::int64_t>(size()) - results.expired - results.connected;
    for (const auto& [id, connection] : remaining) {
      if (silence_of(*connection, now()) > times_.expiry + times_.tick) ++results.overdue;
    }
    return results;
  }

 private:
  struct Connection {
    /// By the timer's clock. The sender stores it only after move() has succeeded. So after a move() that comes too
    /// late, expire() reads the last heartbeat that came in time.
    std::atomic<std::int64_t> last_heartbeat{0};
  };

  void connect(std::uint64_t id) {
    connections_[id].last_heartbeat.store(now().count(), std::memory_order_relaxed);
    if (idle_.set(id, &connections_[id], times_.expiry) != hwt::KeyedResult::Added) {
      throw std::runtime_error("connection " + common::text_of(id) + " could not be added");
    }
  }

  /// Returns false if the connection has expired.
  bool heartbeat(std::uint64_t id) {
    // Reads the clock before move() does, so that no expiry looks early.
    const std::int64_t before = now().count();
    if (idle_.move(id, times_.expiry) != hwt::KeyedResult::Moved) return false;
    connections_[id].last_heartbeat.store(before, std::memory_order_relaxed);
    return true;
  }

  void expire(std::uint64_t id, const Connection& connection) {
    const std::chrono::nanoseconds silence = silence_of(connection, now());
    const std::lock_guard lock(mutex_);
    ++results_.expired;
    results_.earliest = std::min(results_.earliest, silence);
    results_.latest = std::max(results_.latest, silence);
    if (silence < times_.expiry) ++results_.early;
    if (silence > times_.expiry + times_.tick) ++results_.late;
    if (script_.heartbeats_of(id) == Script::kForEver) ++results_.wrong;
  }

  static std::chrono::nanoseconds silence_of(const Connection& connection, std::chrono::nanoseconds time) {
    return time - std::chrono::nanoseconds(connection.last_heartbeat.load(std::memory_order_relaxed));
  }

  hwt::Timer& timer_;
  const Times times_;
  const Script script_;
  std::vector<Connection> connections_;
  std::mutex mutex_;
  Results results_;                                   // guarded by mutex_
  hwt::KeyedTimer<std::uint64_t, Connection*> idle_;  // last: it uses the other members
};

}  // namespace pool
