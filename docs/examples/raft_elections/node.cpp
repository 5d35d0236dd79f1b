#include "node.h"

#include <string>

namespace raft {
namespace {

std::string name_of(const char* timer, int id) { return std::string(timer) + " of node " + std::to_string(id); }

}  // namespace

Node::Node(int id, std::chrono::milliseconds election_timeout, hwt::Timer& timer, asio::io_context& io,
           Timeline& timeline, RandomTimeouts& random)
    : id_(id),
      election_timeout_(election_timeout),
      timeline_(timeline),
      endpoint_(io),
      election_(name_of("election", id), election_timeout, timer,
                {.on_trigger = [this] { election_timed_out(); },
                 .adjust_timeout = [&random](auto timeout) { return random.between(timeout, 2 * timeout); }}),
      vote_(name_of("vote", id), election_timeout, timer,
            {.on_trigger = [this] { vote_timed_out(); },
             .adjust_timeout = [&random](auto timeout) { return random.between(timeout, 2 * timeout); }}),
      heartbeat_(name_of("heartbeat", id), election_timeout / 10, timer, {.on_trigger = [this] { send_heartbeats(); }}),
      step_down_(name_of("step-down", id), election_timeout / 2, timer, {.on_trigger = [this] { check_majority(); }}) {}

void Node::start(const std::map<int, std::uint16_t>& ports) {
  const std::lock_guard lock(mutex_);
  peers_ = ports;
  peers_.erase(id_);
  endpoint_.listen([this](const Message& message) { take(message); });
  election_.start();
}

void Node::kill() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(killed_, true)) return;
    timeline_.record(id_, term_, Happening::Killed);
  }
  for (hwt::RepeatedTimer* timer : {&election_, &vote_, &heartbeat_, &step_down_}) timer->destroy();
  endpoint_.close();
}

void Node::election_timed_out() {
  const std::lock_guard lock(mutex_);
  if (!killed_ && role_ == Role::Follower) elect_self();
}

void Node::vote_timed_out() {
  const std::lock_guard lock(mutex_);
  if (!killed_ && role_ == Role::Candidate) elect_self();
}

void Node::send_heartbeats() {
  const std::lock_guard lock(mutex_);
  if (!killed_ && role_ == Role::Leader) broadcast(Kind::Heartbeat);
}

void Node::check_majority() {
  const std::lock_guard lock(mutex_);
  if (killed_ || role_ != Role::Leader) return;
  const Clock::time_point oldest = Clock::now() - election_timeout_;
  std::size_t heard = 1;  // itself
  for (const auto& [peer, when] : heard_from_) heard += when >= oldest ? 1 : 0;
  if (heard < majority()) step_down(term_);
}

void Node::elect_self() {
  ++term_;
  role_ = Role::Candidate;
  voted_for_ = id_;
  votes_ = {id_};
  timeline_.record(id_, term_, Happening::Candidate);
  election_.stop();
  vote_.start();  // does nothing inside its own trigger, whose end arms it again
  broadcast(Kind::RequestVote);
}

void Node::become_leader() {
  role_ = Role::Leader;
  for (const auto& [peer, port] : peers_) heard_from_[peer] = Clock::now();
  timeline_.record(id_, term_, Happening::Leader);
  vote_.stop();
  heartbeat_.start();
  step_down_.start();
  broadcast(Kind::Heartbeat);
}

void Node::step_down(std::uint64_t term) {
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

void Node::take(const Message& message) {
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
        step_down(term_);  // a candidate learns that another one was elected
        election_.restart();
      }
      return reply(message, Kind::HeartbeatReply, current);
    case Kind::HeartbeatReply:
      if (current && role_ == Role::Leader) heard_from_[message.from] = Clock::now();
      return;
  }
}

void Node::broadcast(Kind kind) {
  for (const auto& [peer, port] : peers_) endpoint_.send(port, {kind, id_, term_});
}

void Node::reply(const Message& to, Kind kind, bool granted) {
  endpoint_.send(peers_.at(to.from), {kind, id_, term_, granted});
}

}  // namespace raft
