// kj::HttpServer with the timeouts of many idle connections on wheel_timer.h, and on kj's own timer in turn.

#include <kj/async-io.h>
#include <kj/compat/http.h>

#include <array>
#include <random>

#include "common/common.h"
#include "common/cpu_time.h"
#include "service.h"
#include "wheel_timer.h"

namespace kj_http {
namespace {

using common::cpu_time_of_thread;
using common::text_of;

struct Settings {
  std::size_t connections = 100'000;
  int rounds = 9;
  std::int64_t requests = 10'000;  // of each round
};

constexpr kj::Duration kIdleLimit = 5 * kj::SECONDS;
constexpr kj::Duration kStep = 10 * kj::MILLISECONDS;  // of simulated time
constexpr std::string_view kRequest = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A server with idle connections, in a simulated loop: requests come through pipes, and time passes in advance().
class Server {
 public:
  explicit Server(bool on_wheel) : timer_(on_wheel ? static_cast<kj::Timer&>(wheel_timer_) : loop_timer_) {}

  void connect() {
    kj::TwoWayPipe pipe = kj::newTwoWayPipe();
    connections_.push_back(
        {kj::mv(pipe.ends[1]),
         server_.listenHttp(kj::mv(pipe.ends[0])).then([this] { ++closed_; }).eagerlyEvaluate([this](kj::Exception&&) {
           ++broken_;
         })});
  }

  /// Makes a request on a connection. From its end on, the server limits how long that connection may be idle.
  void request(std::size_t connection, kj::WaitScope& scope) {
    kj::AsyncIoStream& client = *connections_[connection].client;
    client.write(kRequest.data(), kRequest.size()).wait(scope);
    std::array<char, 200> answer{};
    const std::size_t size = client.tryRead(answer.data(), 1, answer.size()).wait(scope);
    if (!std::string_view(answer.data(), size).starts_with("HTTP/1.1 204")) ++broken_;
  }

  void advance(kj::Duration duration, kj::WaitScope& scope) {
    loop_timer_.advanceTo(loop_timer_.now() + duration);
    scope.poll();
  }

  kj::Timer& timer() { return timer_; }
  std::size_t connections() const { return connections_.size(); }
  std::size_t closed() const { return closed_; }
  std::size_t broken() const { return broken_; }

 private:
  struct Connection {
    kj::Own<kj::AsyncIoStream> client;
    kj::Promise<void> served;
  };

  kj::TimerImpl loop_timer_{kj::origin<kj::TimePoint>()};  // in a program: kj::setupAsyncIo().provider->getTimer()
  WheelTimer wheel_timer_{loop_timer_};
  kj::Timer& timer_;
  const kj::Own<kj::HttpHeaderTable> table_ = kj::HttpHeaderTable::Builder().build();
  Service service_{*table_};
  kj::HttpServer server_{timer_, *table_, service_, {.pipelineTimeout = kIdleLimit}};
  std::size_t closed_ = 0;
  std::size_t broken_ = 0;
  std::vector<Connection> connections_;
};

/// CPU times of one server.
struct Measured {
  std::vector<std::chrono::nanoseconds> request;
  std::vector<std::chrono::nanoseconds> pair;
  std::chrono::nanoseconds close{};
  std::size_t early = 0;
  std::size_t left = 0;
  std::size_t broken = 0;
};

std::chrono::nanoseconds median(std::vector<std::chrono::nanoseconds> values) {
  if (values.empty()) return {};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Makes the connections within a second of simulated time, each with one request.
void fill(Server& server, const Settings& settings, kj::WaitScope& scope) {
  const std::size_t in_one_ms = settings.connections / 1000 + 1;
  while (server.connections() < settings.connections && !common::interrupted()) {
    server.connect();
    server.request(server.connections() - 1, scope);
    if (server.connections() % 1000 == 0) {
      common::show_progress([&] { return common::counted(server.connections(), "connection"); });
    }
    if (server.connections() % in_one_ms == 0) server.advance(1 * kj::MILLISECONDS, scope);
  }
}

/// Makes requests on random connections; then pairs of afterDelay() and dropping the promise.
void measure(Server& server, const Settings& settings, unsigned seed, kj::WaitScope& scope, Measured& measured) {
  std::mt19937_64 random(seed);
  std::vector<std::size_t> connections(static_cast<std::size_t>(settings.requests));
  std::generate(connections.begin(), connections.end(), [&] { return random() % server.connections(); });
  auto start = cpu_time_of_thread();
  for (const std::size_t connection : connections) server.request(connection, scope);
  measured.request.push_back((cpu_time_of_thread() - start) / settings.requests);
  start = cpu_time_of_thread();
  for (const std::size_t connection : connections) {
    const auto dropped = server.timer().afterDelay(kIdleLimit - connection % 1000 * kj::MILLISECONDS);
  }
  measured.pair.push_back((cpu_time_of_thread() - start) / settings.requests);
}

/// Lets time pass until each connection has been idle for too long. Measures the CPU time of closing them.
void close_all(Server& server, kj::WaitScope& scope, Measured& measured) {
  if (server.connections() == 0) return;  // interrupted before the first
  const auto start = cpu_time_of_thread();
  const auto pass = [&](kj::Duration duration) {
    for (; duration > 0 * kj::SECONDS; duration -= kStep) server.advance(kStep, scope);
  };
  // The first connection was made up to a second before the last. So until a second before the limit none has been
  // idle for too long.
  pass(kIdleLimit - 1 * kj::SECONDS - kStep);
  measured.early = server.closed();
  pass(1 * kj::SECONDS + 2 * kStep);
  measured.close = (cpu_time_of_thread() - start) / static_cast<std::int64_t>(server.connections());
  measured.left = server.connections() - server.closed();
  measured.broken = server.broken();
}

void report(const Settings& settings, const Measured& wheel, const Measured& kj) {
  common::Report report(common::counted(settings.connections, "idle connection") + " of kj::HttpServer");
  report.section("CPU time: medians of " + common::counted(wheel.pair.size(), "round") + " on each timer in turn");
  report.table({{"", "wheel", "kj's own"},
                {"request", text_of(median(wheel.request)), text_of(median(kj.request))},
                {"afterDelay and drop", text_of(median(wheel.pair)), text_of(median(kj.pair))},
                {"close an idle one", text_of(wheel.close), text_of(kj.close)}});
  report.section("Connections of the server on the wheel");
  report.line("closed early", wheel.early, "must be 0");
  report.line("not closed", wheel.left, "although idle for too long; must be 0");
  report.line("broken", wheel.broken, "must be 0");
  common::print(report.text());
}

bool run(common::Options& options) {
  Settings settings;
  options.number("--connections", settings.connections, {1, 1e6}, "Idle connections of each server");
  options.number("--rounds", settings.rounds, {1, 1e6}, "Rounds, of which the medians are reported");
  options.number("--requests", settings.requests, {1, 1e6}, "Requests in a round, to each server");
  options.parse();

  kj::EventLoop loop;
  kj::WaitScope scope(loop);
  std::array<Server, 2> servers{Server(true), Server(false)};
  std::array<Measured, 2> measured;
  for (Server& server : servers) fill(server, settings, scope);
  for (int round = 0; round < settings.rounds && !common::interrupted(); ++round) {
    for (std::size_t i : {0, 1}) measure(servers[i], settings, static_cast<unsigned>(round), scope, measured[i]);
    common::show_progress([&] { return text_of(round) + " of " + common::counted(settings.rounds, "round"); });
  }
  for (std::size_t i : {0, 1}) close_all(servers[i], scope, measured[i]);
  report(settings, measured[0], measured[1]);
  return measured[0].early == 0 && measured[0].left == 0 && measured[0].broken == 0;
}

}  // namespace
}  // namespace kj_http

int main(int argc, char** argv) {
  return common::run_example(
      argc, argv,
      {"kj_http",
       "A kj::HttpServer with many idle connections, whose timeouts are on a hwt::PassiveWheel. Measures the CPU\n"
       "time of requests, compared with kj's own timer. The connections are pipes, and time is simulated.",
       "a connection was closed early, late or not at all"},
      kj_http::run);
}
