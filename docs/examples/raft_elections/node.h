#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "endpoint.h"
#include "hashed_wheel_timer/repeated_timer.h"
#include "random_timeouts.h"
#include "timeline.h"

namespace raft {

/// The election part of Raft (Ongaro & Ousterhout 2014, section 5.2), with the timers of SOFAJRaft's NodeImpl:
///
///   election   while a follower   hears nothing for too long: becomes a candidate
///   vote       while a candidate  not elected in time: tries again in the next term
///   heartbeat  while a leader     tells the others
///   step-down  while a leader     hears from no majority: becomes a follower
///
/// Messages come on the thread of the io_context, triggers on the worker of the timer; one lock protects the node from
/// both. So a trigger may wait for the lock while a message restarts or stops its timer: that is why each trigger looks
/// at the role first, and it is safe, for a RepeatedTimer is never armed twice.
class Node {
 public:
  Node(int id, std::chrono::milliseconds election_timeout, hwt::Timer& timer, asio::io_context& io, Timeline& timeline,
       RandomTimeouts& random);

  std::uint16_t port() const { return endpoint_.port(); }

  /// `ports` of all nodes, by id, this one included.
  void start(const std::map<int, std::uint16_t>& ports);

  /// As if the process had ended: its timers are destroyed, its socket is closed.
  void kill();

 private:
  using Clock = Timeline::Clock;
  enum class Role { Follower, Candidate, Leader };

  // With the lock held.
  void elect_self();
  void become_leader();
  void step_down(std::uint64_t term);
  void broadcast(Kind kind);
  void reply(const Message& to, Kind kind, bool granted);
  std::size_t majority() const { return (peers_.size() + 1) / 2 + 1; }

  void take(const Message& message);
  void election_timed_out();
  void vote_timed_out();
  void send_heartbeats();
  void check_majority();

  const int id_;
  const std::chrono::milliseconds election_timeout_;
  Timeline& timeline_;
  Endpoint endpoint_;

  std::mutex mutex_;
  // Guarded by mutex_.
  bool killed_ = false;
  std::map<int, std::uint16_t> peers_;
  Role role_ = Role::Follower;
  std::uint64_t term_ = 0;
  std::optional<int> voted_for_;                 // in term_
  std::set<int> votes_;                          // while a candidate
  std::map<int, Clock::time_point> heard_from_;  // while a leader

  // Last, so that they go first: their destructors wait for triggers, which use the rest.
  hwt::RepeatedTimer election_;
  hwt::RepeatedTimer vote_;
  hwt::RepeatedTimer heartbeat_;
  hwt::RepeatedTimer step_down_;
};

}  // namespace raft
