#include "connection_pool.h"

#include <algorithm>
#include <stdexcept>

namespace pool {

ConnectionPool::ConnectionPool(hwt::Timer& timer, std::int64_t connections, const Times& times, const Script& script)
    : timer_(timer),
      times_(times),
      script_(script),
      connections_(static_cast<std::size_t>(connections)),
      idle_(timer, [this](const std::uint64_t& id, Connection*& connection) { expire(id, *connection); }) {}

void ConnectionPool::connect(std::uint64_t id) {
  Connection& connection = connections_[id];
  connection.last_heartbeat.store(now().count(), std::memory_order_relaxed);
  if (idle_.set(id, &connection, times_.expiry) != hwt::KeyedResult::Added) {
    throw std::runtime_error("connection " + std::to_string(id) + " could not be added");
  }
}

bool ConnectionPool::heartbeat(std::uint64_t id) {
  // The clock is read before move() reads it, so that nothing can look early that is not.
  const std::int64_t before = now().count();
  if (idle_.move(id, times_.expiry) != hwt::KeyedResult::Moved) return false;
  connections_[id].last_heartbeat.store(before, std::memory_order_relaxed);
  return true;
}

std::int64_t ConnectionPool::follow_script(std::uint64_t id, std::uint64_t number) {
  return number < script_.heartbeats_of(id) && heartbeat(id) ? 1 : 0;
}

void ConnectionPool::expire(std::uint64_t id, const Connection& connection) {
  const std::chrono::nanoseconds silence = silence_of(connection);
  const std::lock_guard lock(mutex_);
  ++results_.expired;
  results_.earliest = std::min(results_.earliest, silence);
  results_.latest = std::max(results_.latest, silence);
  if (silence < times_.expiry) ++results_.early;
  if (silence > times_.expiry + times_.tick) ++results_.late;
  if (!script_.goes_silent(id)) ++results_.wrong;
}

std::int64_t ConnectionPool::overdue_since(std::chrono::nanoseconds time) const {
  std::int64_t overdue = 0;
  for (std::uint64_t id = 0; id < size(); ++id) {
    const std::chrono::nanoseconds last(connections_[id].last_heartbeat.load(std::memory_order_relaxed));
    if (time - last > times_.expiry + times_.tick && idle_.contains(id)) ++overdue;
  }
  return overdue;
}

Results ConnectionPool::close() {
  const auto remaining = idle_.stop();
  const std::lock_guard lock(mutex_);
  Results results = results_;
  results.connections = static_cast<std::int64_t>(connections_.size());
  results.connected = static_cast<std::int64_t>(remaining.size());
  results.lost = results.connections - results.expired - results.connected;
  for (const auto& [id, connection] : remaining) {
    if (silence_of(*connection) > times_.expiry + times_.tick) ++results.overdue;
  }
  return results;
}

}  // namespace pool
