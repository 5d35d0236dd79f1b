#pragma once

#include <map>
#include <memory>
#include <thread>

#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "node.h"
#include "options.h"

namespace raft {

/// The nodes, numbered from 1, the timer that they share, and the thread that their messages come on. Ctrl-C
/// interrupts the timeline.
class Cluster {
 public:
  /// Throws std::system_error.
  Cluster(const Options& options, Timeline& timeline);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  void start();
  void kill(int node) { nodes_.at(node)->kill(); }
  void kill_all();

  /// Of all nodes. None once all are killed.
  std::int64_t pending_timeouts() const { return timer_.pending_timeouts(); }

 private:
  // The order matters: nodes use everything before them.
  RandomTimeouts random_;
  hwt::HashedWheelTimer timer_;
  asio::io_context io_{1};
  asio::signal_set interrupts_;
  std::map<int, std::unique_ptr<Node>> nodes_;
  std::thread messages_;
};

}  // namespace raft
