// gRPC calls on the EventEngine of wheel_event_engine.h, which has its timers on a wheel.

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>

#include <atomic>

#include "common/common.h"
#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "server.h"
#include "wheel_event_engine.h"

namespace engine {
namespace {

using common::text_of;
using Clock = std::chrono::steady_clock;

struct Settings {
  std::int64_t calls = 20'000;
  int threads = 4;
  int restarts = 3;
  std::int64_t pairs = 200'000;
};

/// Keeps gRPC initialised. gRPC's own engine needs that.
struct Grpc {
  Grpc() { grpc_init(); }
  ~Grpc() { grpc_shutdown(); }
  Grpc(const Grpc&) = delete;
  Grpc& operator=(const Grpc&) = delete;
};

class Client {
 public:
  explicit Client(int port) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // the server is local
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
    channel_ =
        grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(), arguments);
    stub_ = store::Store::NewStub(channel_);
  }

  /// Returns true if the call was answered. `patient`: waits until the server is up.
  bool call(bool patient) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    context.set_wait_for_ready(patient);
    store::Reply reply;
    return stub_->Get(&context, {}, &reply).ok();
  }

  bool waits_to_reconnect() const { return channel_->GetState(false) == GRPC_CHANNEL_TRANSIENT_FAILURE; }

 private:
  static constexpr std::chrono::seconds kDeadline{20};

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<store::Store::Stub> stub_;
};

/// Makes an engine with a timer of its own each time that gRPC asks for one. Any thread may call it.
class Engines {
 public:
  explicit Engines(std::shared_ptr<EventEngine> rest) : rest_(std::move(rest)) {}

  std::unique_ptr<WheelEventEngine> make() {
    const auto timer = std::make_shared<hwt::HashedWheelTimer>(
        hwt::Options{.tick_duration = std::chrono::milliseconds(1), .on_task_error = common::give_up});
    const std::lock_guard lock(mutex_);
    timers_.push_back(timer);
    return std::make_unique<WheelEventEngine>(timer, rest_);
  }

  struct Counts {
    std::int64_t scheduled = 0;
    std::int64_t cancelled = 0;
    std::int64_t expired = 0;

    std::int64_t left() const { return scheduled - cancelled - expired; }
  };
  /// Returns the sums over all timers.
  Counts counts() const {
    Counts sum;
    const std::lock_guard lock(mutex_);
    for (const auto& timer : timers_) {
      const hwt::TimerStats stats = timer->stats();
      sum.scheduled += stats.scheduled;
      sum.cancelled += stats.cancelled;
      sum.expired += stats.expired;
    }
    return sum;
  }

 private:
  const std::shared_ptr<EventEngine> rest_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<hwt::Timer>> timers_;  // guarded by mutex_
};

struct Results {
  std::int64_t calls = 0;
  std::int64_t failed = 0;
  std::int64_t run_after = 0;  // by these calls
  std::int64_t restarts = 0;
  std::int64_t refused = 0;  // while the server was away
  std::int64_t run_after_of_restarts = 0;
};

/// Makes calls on several threads, one after the other on each.
void call(Client& client, const Settings& settings, Results& results) {
  std::atomic<std::int64_t> begun{0};
  std::atomic<std::int64_t> failed{0};
  std::atomic<std::int64_t> ended{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < settings.threads; ++i) {
      threads.emplace_back([&] {
        while (!common::interrupted() && begun++ < settings.calls) {
          if (!client.call(true)) ++failed;
          ++ended;
          common::show_progress([&] { return text_of(ended.load()) + " of " + text_of(settings.calls) + " calls"; });
        }
      });
    }
  }
  results.calls = ended;
  results.failed = failed;
}

/// Stops the server for a while. Calls fail, and gRPC schedules its reconnects with RunAfter().
void restart(std::optional<Server>& server, Client& client, Results& results) {
  const int port = server->port();
  server.reset();
  while (!client.waits_to_reconnect()) {
    if (!client.call(false)) ++results.refused;
  }
  server.emplace(port);
  if (!client.call(true)) ++results.failed;
  ++results.restarts;
}

/// Measures pairs of RunAfter() and Cancel().
std::string pair_on(EventEngine& engine, std::int64_t pairs) {
  const Clock::time_point start = Clock::now();
  std::int64_t done = 0;
  for (; done < pairs && !common::interrupted(); ++done) {
    engine.Cancel(engine.RunAfter(std::chrono::seconds(20), [] {}));
  }
  return done == 0 ? "none" : text_of((Clock::now() - start) / done);
}

void report(const Settings& settings, const Results& results, const Engines::Counts& timer,
            const std::string& wheel_pair, const std::string& default_pair) {
  common::Report report("gRPC " + grpc::Version() + " with its timers on hwt::HashedWheelTimer");
  report.section("Calls");
  report.line("calls", results.calls, "on " + common::counted(settings.threads, "thread") + ", each with a deadline");
  report.line("RunAfter", results.run_after,
              results.run_after == 0 ? "gRPC has the deadlines of calls on another timer" : "by gRPC for these");
  report.line("failed", results.failed, "must be 0");

  report.section("Restarts of the server");
  report.line("restarts", results.restarts);
  report.line("refused", results.refused, "calls while it was away");
  report.line("RunAfter", results.run_after_of_restarts, "by gRPC, to reconnect");

  report.section("Timer");
  report.line("scheduled", timer.scheduled);
  report.line("cancelled", timer.cancelled);
  report.line("expired", timer.expired);
  report.line("left", timer.left(), "neither run nor cancelled; must be 0");

  report.section("RunAfter and Cancel, a pair");
  report.line("this engine", wheel_pair);
  report.line("gRPC's own", default_pair);
  common::print(report.text());
}

bool run(common::Options& options) {
  constexpr std::chrono::seconds kLeftAfter{10};
  Settings settings;
  options.number("--calls", settings.calls, {1, 1e9}, "Calls to make");
  options.number("--threads", settings.threads, {1, 64}, "Threads that make calls");
  options.number("--restarts", settings.restarts, {0, 1000}, "Restarts of the server");
  options.number("--pairs", settings.pairs, {0, 1e9}, "Pairs of RunAfter and Cancel to measure");
  options.parse();

  namespace grpc_engine = grpc_event_engine::experimental;
  const Grpc grpc;
  const std::shared_ptr<EventEngine> rest = grpc_engine::CreateEventEngine();  // before the factory is set
  const auto engines = std::make_shared<Engines>(rest);
  grpc_engine::SetEventEngineFactory([engines] { return engines->make(); });

  Results results;
  {
    std::optional<Server> server(std::in_place);
    Client client(server->port());
    call(client, settings, results);
    results.run_after = engines->counts().scheduled;
    while (results.restarts < settings.restarts && !common::interrupted()) restart(server, client, results);
    results.run_after_of_restarts = engines->counts().scheduled - results.run_after;
  }
  grpc_engine::EventEngineFactoryReset();
  for (const auto give_up = Clock::now() + kLeftAfter; engines->counts().left() > 0 && Clock::now() < give_up;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const Engines::Counts counts = engines->counts();

  const std::string wheel_pair = pair_on(*engines->make(), settings.pairs);
  report(settings, results, counts, wheel_pair, pair_on(*rest, settings.pairs));
  return results.failed == 0 && counts.left() == 0;
}

}  // namespace
}  // namespace engine

int main(int argc, char** argv) {
  return common::run_example(
      argc, argv,
      {"grpc_event_engine",
       "Calls of gRPC on an EventEngine whose RunAfter() and Cancel() use a hwt::HashedWheelTimer. Counts the\n"
       "timers that gRPC makes on it, also while the server restarts.",
       "a call failed, or a timer neither ran nor was cancelled"},
      engine::run);
}
