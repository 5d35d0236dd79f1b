#include "cluster.h"

#include <csignal>

namespace raft {

Cluster::Cluster(const Options& options, Timeline& timeline)
    : random_(options.seed), timer_({.tick_duration = options.tick}), interrupts_(io_, SIGINT, SIGTERM) {
  // After the first one the signals have their default effect again: a second Ctrl-C ends the program at once.
  interrupts_.async_wait([this, &timeline](const std::error_code& removed, int) {
    if (removed) return;
    timeline.interrupt();
    std::error_code ignored;
    interrupts_.clear(ignored);
  });
  for (int id = 1; id <= options.nodes; ++id) {
    nodes_[id] = std::make_unique<Node>(id, options.election_timeout, timer_, io_, timeline, random_);
  }
}

Cluster::~Cluster() {
  io_.stop();
  if (messages_.joinable()) messages_.join();
}

void Cluster::start() {
  std::map<int, std::uint16_t> ports;
  for (const auto& [id, node] : nodes_) ports[id] = node->port();
  for (const auto& [id, node] : nodes_) node->start(ports);
  messages_ = std::thread([this] { io_.run(); });
}

void Cluster::kill_all() {
  for (const auto& [id, node] : nodes_) node->kill();
}

}  // namespace raft
