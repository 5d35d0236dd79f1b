#include "tests/simulation/client.h"

#include <algorithm>

namespace hwt::simulation {

namespace {

using namespace std::chrono_literals;

constexpr nanoseconds kDialLimit = 12ms;
constexpr nanoseconds kHeartbeat = 8ms;
constexpr nanoseconds kIdle = 20ms;
constexpr nanoseconds kHedgeAfter = 5ms;
constexpr nanoseconds kAttempt = 7ms;
constexpr nanoseconds kBackoff = 2ms;

}  // namespace

Client::Client(World& world, WatchedTimer& timer, Network& network, int connections, Ended ended)
    : world_(world),
      timer_(timer),
      network_(network),
      ended_(std::move(ended)),
      connections_(static_cast<std::size_t>(connections)) {
  idle_.emplace(timer.timer(), [this](int connection, Link&) { expired(connection); });
  for (int i = 0; i < connections; ++i) {
    // Not hwt::jitter, whose numbers nobody could draw again.
    const auto with_jitter = [this, i](nanoseconds interval) {
      const nanoseconds drawn(world_.between(interval.count() / 2, interval.count()));
      at(i).next_beat = timer_.now() + drawn;
      return drawn;
    };
    at(i).heartbeat.emplace("heartbeat", kHeartbeat, timer.timer(),
                            RepeatedTimer::Hooks{.on_trigger = [this, i] { beat(i); }, .adjust_timeout = with_jitter});
  }
  for (int i = 0; i < connections; ++i) dial(i);
}

Client::~Client() = default;

// --- Requests ------------------------------------------------------------------------------------------------------

void Client::call(std::uint64_t number, nanoseconds timeout) {
  const auto request = std::make_shared<Request>(number);
  request->budget = hwt::Deadline::in(timeout, timer_.now());
  open_.emplace(number, request);
  send(request);

  struct Deadline {
    Client* client;
    std::shared_ptr<Request> request;
    void operator()() { client->finish(request, Outcome::TimedOut); }
    void will_not_run() { client->finish(request, Outcome::ShutDown); }
  };
  WatchedTimer::Handle deadline = timer_.start("deadline", timeout, Deadline{this, request});
  if (!deadline) return finish(request, Outcome::ShutDown);
  // By now the answer may have come, or the deadline.
  if (request->over) return void(timer_.cancel(deadline));
  request->deadline = deadline;

  struct Hedge {
    Client* client;
    std::shared_ptr<Request> request;
    void operator()() { client->hedge(request); }
    void will_not_run() {}
  };
  WatchedTimer::Handle hedge = timer_.start("hedge", kHedgeAfter, Hedge{this, request});
  if (request->over) return void(timer_.cancel(hedge));
  request->hedge = hedge;
}

void Client::cancel(std::uint64_t number) {
  const auto found = open_.find(number);
  if (found != open_.end()) finish(std::shared_ptr(found->second), Outcome::Cancelled);
}

void Client::answered(std::uint64_t number, int connection) {
  const auto found = open_.find(number);
  world_.expect(found != open_.end(), "the loser of a hedge is cancelled");
  if (found == open_.end()) return;
  const std::shared_ptr<Request> request = found->second;
  unlimit(request, connection);
  std::erase_if(request->attempts, [=](const Request::Attempt& attempt) { return attempt.connection == connection; });
  world_.pause();
  finish(request, Outcome::Answered);
}

void Client::in_progress(std::uint64_t number, nanoseconds timeout) {
  const auto found = open_.find(number);
  if (found == open_.end()) return;
  const std::shared_ptr<Request> request = found->second;
  WatchedTimer::Handle deadline = request->deadline;
  if (timer_.reschedule(deadline, timeout)) request->budget = hwt::Deadline::in(timeout, timer_.now());
}

/// Sends it on a connection that has no attempt of it. Without one, connected() sends it if no attempt is under way.
void Client::send(const std::shared_ptr<Request>& request) {
  if (request->over || shut_down_) return;
  for (std::size_t tried = 0, i = world_.below(connections_.size()); tried < connections_.size(); ++tried, ++i) {
    const int connection = static_cast<int>(i % connections_.size());
    const bool busy = std::any_of(request->attempts.begin(), request->attempts.end(),
                                  [=](const Request::Attempt& attempt) { return attempt.connection == connection; });
    if (!is_up(connection) || busy) continue;
    const std::uint64_t message = network_.send(connection, Network::Kind::Request, request->number);
    request->attempts.push_back({connection, message});
    world_.trace("request ", request->number, " is sent on connection ", connection);
    return limit(request);
  }
}

/// Limits the time of the latest attempt: to kAttempt, or to the rest of the request's budget if that is less.
void Client::limit(const std::shared_ptr<Request>& request) {
  struct Limit {
    Client* client;
    std::shared_ptr<Request> request;
    int connection;
    void operator()() { client->give_up(request, connection); }
    void will_not_run() {}
  };
  Request::Attempt& attempt = request->attempts.back();
  const TimePoint now = timer_.now();
  const hwt::Deadline received = hwt::Deadline::from_grpc_timeout(request->budget.to_grpc_timeout(now), now);
  world_.expect(received.remaining(now) <= request->budget.remaining(now), "a server has no more time than its client");
  world_.expect(received.expired(now) || received <= request->budget, "and no later deadline");
  const Leeway leeway(nanoseconds(world_.one_in(2) ? 0 : world_.between(0, 4'000'000)));
  const hwt::Deadline limit = min(hwt::Deadline::in(kAttempt, now), request->budget);
  world_.expect(limit <= request->budget && limit <= now + kAttempt, "min() is the earlier deadline");
  attempt.limit =
      at(attempt.connection).limits->add("attempt", limit, leeway, Limit{this, request, attempt.connection});
}

/// The limit of an attempt that is over.
void Client::unlimit(const std::shared_ptr<Request>& request, int connection) {
  for (const Request::Attempt& attempt : request->attempts) {
    if (attempt.connection == connection && at(connection).limits) at(connection).limits->cancel(attempt.limit);
  }
}

/// Called by the task of a limit. If this breaks the connection, it destroys the scope of that limit inside its task.
void Client::give_up(const std::shared_ptr<Request>& request, int number) {
  world_.trace("request ", request->number, " gets no answer on connection ", number);
  const auto it = std::find_if(request->attempts.begin(), request->attempts.end(),
                               [=](const Request::Attempt& attempt) { return attempt.connection == number; });
  world_.expect(it != request->attempts.end() && is_up(number), "a limit ends with its attempt or its connection");
  if (it == request->attempts.end()) return;
  network_.cancel(it->message);
  request->attempts.erase(it);
  world_.pause();
  is_up(number) && world_.one_in(4) ? broken(number) : send(request);
}

void Client::hedge(const std::shared_ptr<Request>& request) {
  if (request->attempts.size() < 2) send(request);
}

void Client::finish(const std::shared_ptr<Request>& request, Outcome outcome) {
  if (std::exchange(request->over, true)) return;
  open_.erase(request->number);
  for (const Request::Attempt& attempt : request->attempts) {
    network_.cancel(attempt.message);
    unlimit(request, attempt.connection);
  }
  request->attempts.clear();
  ended_(request->number, outcome);
  // A handle keeps a timeout that stop() has returned. The timeout keeps its task, and the task keeps this request. So
  // no handle may stay in the request.
  WatchedTimer::Handle hedge = std::exchange(request->hedge, {});
  WatchedTimer::Handle deadline = std::exchange(request->deadline, {});
  timer_.cancel(hedge);
  timer_.cancel(deadline);
}

// --- Connections --------------------------------------------------------------------------------------------------

void Client::dial(int number) {
  Connection& connection = at(number);
  if (connection.state != State::Down || shut_down_) return;
  connection.state = State::Dialing;
  connection.reconnect = {};
  world_.pause();
  if (connection.state != State::Dialing || timer_.over()) return;
  try {
    connection.dialing.emplace(timer_.timer(), kDialLimit);
  } catch (const IllegalState&) {
    return world_.expect(false, "refused only when the timer has ended");
  }
  connection.limited = true;
  world_.trace("dials connection ", number);
  network_.dial(number, connection.dialing->token(), [this, number] { dial_stopped(number); });
  world_.pause();
}

/// In the task of the StopAfter.
void Client::dial_stopped(int number) {
  const WatchedTimer::InTask in_task(timer_);
  Connection& connection = at(number);
  world_.trace("connection ", number, " takes too long");
  world_.expect(connection.limited && connection.dialing->timed_out(), "the deadline alone stops a dial");
  connection.limited = false;
  down(number);
}

void Client::connected(int number) {
  Connection& connection = at(number);
  world_.trace("connection ", number, " is up");
  unlimit(connection);
  if (shut_down_) return;
  connection.state = State::Up;
  connection.limits.emplace(world_, timer_);
  connection.failures = 0;
  keep_alive(number);
  if (connection.state != State::Up) return;
  if (!timer_.over()) {
    connection.heartbeat->start();
    connection.beating = true;
  }
  for (const auto& [id, request] : open_) {
    if (request->attempts.empty()) send(request);  // it has waited for a connection
  }
}

/// The deadline of a dial that is over.
void Client::unlimit(Connection& connection) {
  if (!connection.limited) return;
  connection.limited = false;
  world_.expect(connection.dialing->cancel(), "cancel() is true before the deadline");
  world_.expect(!connection.dialing->timed_out(), "a cancelled deadline has not passed");
}

void Client::broken(int number) {
  Connection& connection = at(number);
  world_.trace("connection ", number, " breaks");
  unlimit(connection);
  world_.pause();
  if (connection.idle_due && idle_->remove(number)) connection.idle_due.reset();
  world_.expect(!connection.idle_due, "remove() returns a value that is there");
  down(number);
}

/// Takes the connection down, sends its requests on other connections, and dials again after a while.
void Client::down(int number) {
  Connection& connection = at(number);
  if (connection.state == State::Down) return;
  connection.state = State::Down;
  connection.limits.reset();
  world_.pause();
  unlimit(connection);
  network_.lose_all_of(number);
  network_.hang_up(number);
  stop_beating(number);
  for (const auto& [id, request] : open_) {
    const auto lost = [=](const Request::Attempt& attempt) { return attempt.connection == number; };
    if (std::erase_if(request->attempts, lost) != 0) send(request);
  }
  if (connection.state != State::Down || connection.reconnect || shut_down_) return;

  struct Reconnect {
    Client* client;
    int number;
    void operator()() { client->dial(number); }
    void will_not_run() {}
  };
  const nanoseconds full = kBackoff * (1 << std::min(connection.failures++, 4));
  const nanoseconds wait(world_.between(full.count() / 2, full.count()));
  WatchedTimer::Handle reconnect = timer_.start("reconnect", wait, Reconnect{this, number});
  if (connection.state == State::Down && !shut_down_) connection.reconnect = reconnect;
}

void Client::stop_beating(int number) {
  Connection& connection = at(number);
  world_.pause();
  if (!connection.beating) return;
  connection.beating = false;
  connection.heartbeat->stop();
  world_.pause();
}

void Client::beat(int number) {
  const WatchedTimer::InTask in_task(timer_);
  Connection& connection = at(number);
  world_.trace("connection ", number, " sends a heartbeat");
  world_.expect(connection.beating && !connection.in_beat, "no heartbeat after stop(), nor two at once");
  world_.expect(timer_.now() >= connection.next_beat, "no heartbeat is early");
  connection.in_beat = true;
  world_.pause();
  if (connection.state == State::Up) network_.send(number, Network::Kind::Heartbeat);
  world_.pause();
  connection.in_beat = false;
}

void Client::alive(int number) {
  Connection& connection = at(number);
  world_.pause();
  if (connection.state != State::Up) return;
  if (world_.one_in(4)) connection.limits->cancel_all();
  keep_alive(number);
}

void Client::keep_alive(int number) {
  Connection& connection = at(number);
  world_.pause();
  if (connection.state != State::Up) return;
  const KeyedResult result = connection.idle_due ? idle_->move(number, kIdle) : idle_->set(number, Link{}, kIdle);
  world_.trace("connection ", number, " is alive");
  if (timer_.over()) return;
  world_.expect(result == (connection.idle_due ? KeyedResult::Moved : KeyedResult::Added),
                "set() adds what is not there, and move() moves what is");
  connection.idle_deadline = timer_.now() + kIdle;
  connection.idle_due = timer_.due_of(connection.idle_deadline);
  world_.pause();
}

void Client::expired(int number) {
  const WatchedTimer::InTask in_task(timer_);
  Connection& connection = at(number);
  world_.trace("connection ", number, " is silent");
  world_.expect(connection.idle_due.has_value(), "a value expires once, and not after remove()");
  world_.expect(timer_.now() >= connection.idle_deadline, "no value is early");
  connection.idle_due.reset();
  world_.pause();
  if (!connection.idle_due) down(number);
}

// --- The end ------------------------------------------------------------------------------------------------------

void Client::let_go() {
  shut_down_ = true;
  if (!idle_) return;
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    Connection& connection = connections_[i];
    connection.state = State::Down;
    connection.limits.reset();
    unlimit(connection);
    network_.hang_up(static_cast<int>(i));
    network_.lose_all_of(static_cast<int>(i));
    connection.beating = false;
    connection.heartbeat.reset();
    connection.dialing.reset();
  }
  const auto values = std::count_if(connections_.begin(), connections_.end(),
                                    [](const Connection& connection) { return connection.idle_due.has_value(); });
  world_.expect(idle_->stop().size() == static_cast<std::size_t>(values), "KeyedTimer::stop() returns all values");
  for (Connection& connection : connections_) connection.idle_due.reset();
  idle_.reset();
}

// --- The promises -------------------------------------------------------------------------------------------------

std::int64_t Client::pending() const {
  if (timer_.over()) return 0;
  std::int64_t sum = 0;
  for (const Connection& connection : connections_) {
    sum += connection.limited ? 1 : 0;
    sum += connection.beating && !connection.in_beat ? 1 : 0;
    sum += connection.idle_due ? 1 : 0;
  }
  return sum;
}

void Client::check() const {
  for (const Connection& connection : connections_) {
    if (connection.limits) connection.limits->check();
    if (!connection.heartbeat || timer_.over()) continue;
    world_.expect(connection.heartbeat->running() == connection.beating, "a heartbeat runs until it is stopped");
    world_.expect(!connection.idle_due || !timer_.is_overdue(*connection.idle_due), "a value expires in its tick");
  }
}

}  // namespace hwt::simulation
