// Raft leader election with hwt::RepeatedTimer. node.cpp shows the use of the timers: who starts, stops and restarts
// which of them, and when.

#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>

#include "cluster.h"
#include "common/format.h"
#include "options.h"

namespace raft {
namespace {

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

std::string name_of(const Leadership& leader) {
  return "node " + std::to_string(leader.node) + " leads in term " + std::to_string(leader.term);
}

constexpr const char* kInterrupted = "Interrupted.";

/// Elections until there is no majority or somebody presses Ctrl-C; tells the result. Throws std::runtime_error when
/// one takes too long.
std::string hold_elections(const Options& options, Cluster& cluster, Timeline& timeline) {
  const std::string within = " within " + std::to_string(options.within.count()) + " ms";
  const auto reign = 3 * options.election_timeout;

  const auto first = timeline.wait_for_leader(1, options.within);
  if (timeline.interrupted()) return kInterrupted;
  if (!first) fail("no leader" + within);
  timeline.let_pass(reign);
  // It may have lost its office meanwhile, on a machine that stalls.
  const auto killed = timeline.wait_for_leader(first->term, options.within);
  if (timeline.interrupted()) return kInterrupted;
  if (!killed) fail("no leader" + within);
  cluster.kill(killed->node);

  const auto second = timeline.wait_for_leader(killed->term + 1, options.within);
  if (timeline.interrupted()) return kInterrupted;
  if (!second) fail("no leader in a term higher than " + std::to_string(killed->term) + within);
  timeline.let_pass(reign);
  if (timeline.interrupted()) return kInterrupted;

  int alive = options.nodes - 1;
  for (int node = 1; node <= options.nodes && alive > options.nodes / 2; ++node) {
    if (node == killed->node || node == second->node) continue;
    cluster.kill(node);
    --alive;
  }
  const bool stepped_down = timeline.wait_for_no_leader(options.within);
  if (timeline.interrupted()) return kInterrupted;
  if (!stepped_down) fail("a leader that hears from no majority does not step down" + within);
  timeline.let_pass(reign);  // in which nobody can be elected
  if (timeline.interrupted()) return kInterrupted;
  if (const auto leader = timeline.wait_for_leader(1, std::chrono::milliseconds(0))) {
    fail(name_of(*leader) + " without a majority");
  }
  return "First " + name_of(*killed) + ", then " + name_of(*second) + ", then there is no majority.";
}

int run(const Options& options) {
  Timeline timeline(std::cout);
  Cluster cluster(options, timeline);
  cluster.start();
  const std::string result = hold_elections(options, cluster, timeline);
  cluster.kill_all();
  std::cout << '\n' << result << '\n';
  if (const auto term = timeline.term_with_two_leaders()) fail("two leaders in term " + std::to_string(*term));
  if (cluster.pending_timeouts() != 0) fail("a killed node has left a timeout behind");
  std::cout << "Never two leaders in one term." << std::endl;
  if (!std::cout) fail("cannot write the timeline");
  return 0;
}

}  // namespace
}  // namespace raft

int main(int argc, char** argv) {
  try {
    const raft::ParsedOptions parsed = raft::parse_options(argc, argv);
    return parsed.options ? raft::run(*parsed.options) : parsed.exit_status;
  } catch (const std::exception& error) {
    std::cerr << "raft_elections: " << common::one_line(error.what()) << '\n';
    return 1;
  }
}
