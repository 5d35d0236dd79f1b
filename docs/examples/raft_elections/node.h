#pragma once

#include <random>
#include <set>

#include "common/common.h"
#include "hashed_wheel_timer/repeated_timer.h"
#include "network.h"
#include "timeline.h"

namespace raft {

/// The election part of Raft (Ongaro & Ousterhout 2014, section 5.2), with the timers of SOFAJRaft's NodeImpl:
///
///   election   while a follower   hears nothing for too long: becomes a candidate
///   vote       while a candidate  not elected in time: tries again in the next term
///   heartbeat  while a leader     tells the others
///   step-down  while a leader     hears from no majority: becomes a follower
///
/// Messages arrive on the thread of the io_context, and triggers on the worker of the timer. One lock protects the
/// node.
/// A trigger may wait for the lock while a message restarts or stops its timer. So each trigger checks the role first.
/// The timer stays consistent, because a RepeatedTimer is never armed twice.
class Node {
 public:
  Node(int id, std::chrono::milliseconds election_timeout, std::uint64_t seed, hwt::Timer& timer, asio::io_context& io,
       Timeline& timeline)
      : id_(id),
        election_timeout_(election_timeout),
        timeline_(timeline),
        endpoint_(io),
        random_(seed + static_cast<std::uint64_t>(id)),
        election_(name_of("election"), election_timeout, timer,
                  {.on_trigger = [this] { election_timed_out(); },
                   .adjust_timeout = [this](auto timeout) { return once_to_twice(timeout); }}),
        vote_(name_of("vote"), election_timeout, timer,
              {.on_trigger = [this] { vote_timed_out(); },
               .adjust_timeout = [this](auto timeout) { return once_to_twice(timeout); }}),
        heartbeat_(name_of("heartbeat"), election_timeout / 10, timer, {.on_trigger = [this] { send_heartbeats(); }}),
        step_down_(name_of("step-down"), election_timeout / 2, timer, {.on_trigger = [this] { check_majority(); }}) {}

  std::uint16_t port() const { return endpoint_.port(); }

  /// `ports`: the ports of all nodes by id, including this one.
  void start(const std::map<int, std::uint16_t>& ports) {
    const std::lock_guard lock(mutex_);
    peers_ = ports;
    peers_.erase(id_);
    endpoint_.listen([this](const Message& message) { take(message); });
    election_.start();
  }

  /// Simulates the end of the process: destroys the timers and closes the socket. `on_record`: writes to the timeline.
  void kill(bool on_record) {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(killed_, true)) return;
      if (on_record) timeline_.record(id_, term_, Happening::Killed);
    }
    for (hwt::RepeatedTimer* timer : {&election_, &vote_, &heartbeat_, &step_down_}) timer->destroy();
    endpoint_.close();
  }

 private:
  using Clock = Timeline::Clock;
  enum class Role { Follower, Candidate, Leader };

  void election_timed_out() {
    const std::lock_guard lock(mutex_);
    if (!killed_ && role_ == Role::Follower) elect_self();
  }

  void vote_timed_out() {
    const std::lock_guard lock(mutex_);
    if (!killed_ && role_ == Role::Candidate) elect_self();
  }

  void send_heartbeats() {
    const std::lock_guard lock(mutex_);
    if (!killed_ && role_ == Role::Leader) broadcast(Kind::Heartbeat);
  }

  void check_majority() {
    const std::lock_guard lock(mutex_);
    if (killed_ || role_ != Role::Leader) return;
    const Clock::time_point oldest = Clock::now() - election_timeout_;
    std::size_t heard = 1;  // itself
    for (const auto& [peer, when] : heard_from_) heard += when >= oldest ? 1 : 0;
    if (heard < majority()) step_down(term_);
  }

  void take(const Message& message) {
    const std::lock_guard lock(mutex_);
    if (killed_ || peers_.count(message.from) == 0) return;
    if (message.term > term_) step_down(message.term);
    const bool current = message.term == term_;
    switch (message.kind) {
      case Kind::RequestVote: {
        const bool granted = current && voted_for_.value_or(message.from) == message.from;
        if (granted) {
          voted_for_ = message.from;
          election_.restart();
        }
        return reply(message, Kind::Vote, granted);
      }
      case Kind::Vote:
        if (!current || role_ != Role::Candidate || !message.granted) return;
        votes_.insert(message.from);
        if (votes_.size() >= majority()) become_leader();
        return;
      case Kind::Heartbeat:
        if (current) {
          step_down(term_);  // another candidate was elected
          election_.restart();
        }
        return reply(message, Kind::HeartbeatReply, current);
      case Kind::HeartbeatReply:
        if (current && role_ == Role::Leader) heard_from_[message.from] = Clock::now();
        return;
    }
  }

  // Call with the lock held.
  void elect_self() {
    ++term_;
    role_ = Role::Candidate;
    voted_for_ = id_;
    votes_ = {id_};
    timeline_.record(id_, term_, Happening::Candidate);
    election_.stop();
    vote_.start();  // no effect inside its own trigger, which arms it again at its end
    broadcast(Kind::RequestVote);
  }

  void become_leader() {
    role_ = Role::Leader;
    for (const auto& [peer, port] : peers_) heard_from_[peer] = Clock::now();
    timeline_.record(id_, term_, Happening::Leader);
    vote_.stop();
    heartbeat_.start();
    step_down_.start();
    broadcast(Kind::Heartbeat);
  }

  void step_down(std::uint64_t term) {
    if (role_ != Role::Follower) {
      timeline_.record(id_, term_, Happening::SteppedDown);
      role_ = Role::Follower;
      vote_.stop();
      heartbeat_.stop();
      step_down_.stop();
      election_.restart();
    }
    if (term > term_) {
      term_ = term;
      voted_for_.reset();
    }
  }

  void broadcast(Kind kind) {
    for (const auto& [peer, port] : peers_) endpoint_.send(port, {kind, 0, id_, term_});
  }

  void reply(const Message& to, Kind kind, bool granted) {
    endpoint_.send(peers_.at(to.from), {kind, granted, id_, term_});
  }

  std::size_t majority() const { return (peers_.size() + 1) / 2 + 1; }
  std::string name_of(const char* timer) const { return std::string(timer) + " of node " + std::to_string(id_); }

  /// Returns a random timeout, so that nodes do not become candidates together. Any thread may call it, with or without
  /// the lock.
  std::chrono::nanoseconds once_to_twice(std::chrono::nanoseconds timeout) {
    const std::lock_guard lock(random_mutex_);
    return timeout +
           std::chrono::nanoseconds(std::uniform_int_distribution<std::int64_t>(0, timeout.count() - 1)(random_));
  }

  const int id_;
  const std::chrono::milliseconds election_timeout_;
  Timeline& timeline_;
  Endpoint endpoint_;

  std::mutex random_mutex_;
  std::mt19937_64 random_;  // guarded by random_mutex_

  std::mutex mutex_;
  // Guarded by mutex_.
  bool killed_ = false;
  std::map<int, std::uint16_t> peers_;
  Role role_ = Role::Follower;
  std::uint64_t term_ = 0;
  std::optional<int> voted_for_;                 // in term_
  std::set<int> votes_;                          // while a candidate
  std::map<int, Clock::time_point> heard_from_;  // while a leader

  // Last: their destructors wait for triggers, which use the other members.
  hwt::RepeatedTimer election_;
  hwt::RepeatedTimer vote_;
  hwt::RepeatedTimer heartbeat_;
  hwt::RepeatedTimer step_down_;
};

}  // namespace raft
