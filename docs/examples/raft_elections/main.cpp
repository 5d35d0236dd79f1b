// Raft leader election with hwt::RepeatedTimer. node.h starts, stops and restarts the timers.

#include "common/common.h"
#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "node.h"
#include "timeline.h"

namespace raft {
namespace {

using common::text_of;

struct Settings {
  int nodes = 3;
  std::chrono::milliseconds election_timeout{150};
  std::chrono::milliseconds tick{5};
  std::chrono::milliseconds within{10'000};  // the limit of each step
  std::uint64_t seed = 1;
};

/// The nodes, numbered from 1, their timer, and the thread of their messages.
class Cluster {
 public:
  /// Throws std::system_error.
  Cluster(const Settings& settings, Timeline& timeline)
      : timer_({.tick_duration = settings.tick, .on_task_error = common::give_up}) {
    std::map<int, std::uint16_t> ports;
    for (int id = 1; id <= settings.nodes; ++id) {
      nodes_[id] = std::make_unique<Node>(id, settings.election_timeout, settings.seed, timer_, io_, timeline);
      ports[id] = nodes_[id]->port();
    }
    for (const auto& [id, node] : nodes_) node->start(ports);
    messages_ = std::thread([this] { io_.run(); });
  }
  ~Cluster() {
    io_.stop();
    if (messages_.joinable()) messages_.join();
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  void kill(int node) { nodes_.at(node)->kill(true); }
  void shut_down() {
    for (const auto& [id, node] : nodes_) node->kill(false);
  }

  /// Returns the pending timeouts of all nodes. Must be 0 once all are killed.
  std::int64_t pending_timeouts() const { return timer_.pending_timeouts(); }

 private:
  // The order matters: a node uses the members before it.
  hwt::HashedWheelTimer timer_;
  asio::io_context io_{1};
  std::map<int, std::unique_ptr<Node>> nodes_;
  std::thread messages_;
};

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

std::string name_of(const Leadership& leader) {
  return "node " + text_of(leader.node) + " leads in term " + text_of(leader.term);
}

/// Holds elections until there is no majority. Returns a summary. Throws std::runtime_error if a step takes too long,
/// and Interrupted.
std::string hold_elections(const Settings& settings, Cluster& cluster, Timeline& timeline) {
  const std::string within = " within " + text_of(settings.within);
  const auto reign = 3 * settings.election_timeout;

  const auto first = timeline.wait_for_leader(1, settings.within);
  if (!first) fail("no leader" + within);
  timeline.let_pass(reign);
  // The leader may have changed on a stalled machine.
  const auto killed = timeline.wait_for_leader(first->term, settings.within);
  if (!killed) fail("no leader" + within);
  cluster.kill(killed->node);

  const auto second = timeline.wait_for_leader(killed->term + 1, settings.within);
  if (!second) fail("no leader in a term higher than " + text_of(killed->term) + within);
  timeline.let_pass(reign);

  int alive = settings.nodes - 1;
  for (int node = 1; node <= settings.nodes && alive > settings.nodes / 2; ++node) {
    if (node == killed->node || node == second->node) continue;
    cluster.kill(node);
    --alive;
  }
  if (!timeline.wait_for_no_leader(settings.within)) {
    fail("a leader without a majority does not step down" + within);
  }
  timeline.let_pass(reign);  // no node can be elected now
  if (const auto leader = timeline.wait_for_leader(1, std::chrono::milliseconds(0))) {
    fail(name_of(*leader) + " without a majority");
  }
  return "First " + name_of(*killed) + ", then " + name_of(*second) + ", then there is no majority.";
}

bool run(common::Options& options) {
  Settings settings;
  options.number("--nodes", settings.nodes, {3, 9, true}, "Number of nodes");
  options.number("--election-timeout-ms", settings.election_timeout, {20, 10'000},
                 "A follower becomes a candidate after a silence of one to two\n"
                 "times this, at random; heartbeats come ten times as often");
  options.number("--tick-ms", settings.tick, {1, 1000}, "Tick of the timer, at most a tenth of the election timeout");
  options.number("--within-ms", settings.within, {1, 600'000}, "Limit of each step");
  options.number("--seed", settings.seed, {0, 0x1p53}, "Seed of the random timeouts");
  options.parse();
  if (settings.tick * 10 > settings.election_timeout) {
    options.refuse("--tick-ms", text_of(settings.tick.count()),
                   "at most a tenth of the election timeout, " + text_of(settings.election_timeout.count() / 10));
  }

  Timeline timeline;
  Cluster cluster(settings, timeline);
  std::string result;
  try {
    result = hold_elections(settings, cluster, timeline);
  } catch (const Interrupted&) {
    result = "The elections were not over.";
  }
  cluster.shut_down();
  common::print('\n' + result + '\n');
  if (const auto term = timeline.term_with_two_leaders()) fail("two leaders in term " + text_of(*term));
  if (cluster.pending_timeouts() != 0) fail("a killed node has left a timeout behind");
  common::print("Never two leaders in one term.\n");
  return true;
}

}  // namespace
}  // namespace raft

int main(int argc, char** argv) {
  return common::run_example(
      argc, argv,
      {"raft_elections",
       "Raft leader election between nodes in one process. Each node has hwt::RepeatedTimers on one shared\n"
       "hwt::HashedWheelTimer. The program kills a leader, waits for the next one, and kills followers until that\n"
       "leader loses its majority and steps down. It prints a timeline.",
       "two nodes led in one term or a step took too long"},
      raft::run);
}
