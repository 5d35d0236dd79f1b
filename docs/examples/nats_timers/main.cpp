// libnats on the timers of nats_timers.cpp: the cost of a timer, and requests to a server.

#include <dlfcn.h>

#include <atomic>
#include <random>

#include "common/common.h"
#include "common/cpu_time.h"
#include "nats_timers.h"
#include "server.h"

namespace nats {
namespace {

using common::cpu_time_of_thread;
using common::text_of;
using Clock = std::chrono::steady_clock;

struct Settings {
  std::int64_t timers = 40'000;
  std::int64_t requests = 5'000;
  int subscriptions = 1'000;
};

void check(natsStatus status, const std::string& what) {
  if (status != NATS_OK) throw std::runtime_error(what + ": " + natsStatus_GetText(status));
}

/// The functions of natsTimer: those of this example, or those that they replace.
struct Functions {
  decltype(&natsTimer_Create) create;
  decltype(&natsTimer_Stop) stop;
  decltype(&natsTimer_Release) release;
};

Functions functions_of_libnats() {
  Dl_info place;
  if (dladdr(reinterpret_cast<void*>(&nats_GetVersion), &place) == 0) throw std::runtime_error("libnats: not found");
  void* const library = dlopen(place.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) throw std::runtime_error("libnats: not found");
  return {reinterpret_cast<decltype(&natsTimer_Create)>(dlsym(library, "natsTimer_Create")),
          reinterpret_cast<decltype(&natsTimer_Stop)>(dlsym(library, "natsTimer_Stop")),
          reinterpret_cast<decltype(&natsTimer_Release)>(dlsym(library, "natsTimer_Release"))};
}

/// Creates timers that do not fire, and returns the mean CPU time of one.
std::string create(const Functions& functions, std::int64_t count, bool random) {
  constexpr std::int64_t kHour = 3'600'000;
  std::mt19937_64 numbers(1);
  std::vector<std::int64_t> intervals(static_cast<std::size_t>(count), kHour);
  if (random) std::generate(intervals.begin(), intervals.end(), [&] { return kHour + numbers() % kHour; });
  std::vector<natsTimer*> timers;
  timers.reserve(intervals.size());
  const auto start = cpu_time_of_thread();
  for (const std::int64_t interval : intervals) {
    if (common::interrupted()) break;
    natsTimer* timer = nullptr;
    check(functions.create(&timer, [](natsTimer*, void*) {}, [](natsTimer*, void*) {}, interval, nullptr), "timer");
    timers.push_back(timer);
    if (timers.size() % 1000 != 0) continue;
    common::show_progress([&] { return text_of(timers.size()) + " of " + text_of(count) + " timers"; });
  }
  const auto spent = cpu_time_of_thread() - start;
  for (natsTimer* timer : timers) {
    functions.stop(timer);
    functions.release(timer);
  }
  return timers.empty() ? "none" : text_of(spent / timers.size());
}

struct Results {
  std::int64_t answered = 0;
  std::int64_t failed = 0;
  bool timed_out = false;
  // Subscriptions that were told that no message has come. Written by libnats until nats_CloseAndWait().
  std::atomic<std::int64_t> told = 0;
  hwt_stats timer{};
};

void answer(natsConnection* connection, natsSubscription*, natsMsg* message, void*) {
  natsConnection_PublishString(connection, natsMsg_GetReply(message), natsMsg_GetData(message));
  natsMsg_Destroy(message);
}

/// Counts a timeout, and destroys its subscription. If libnats 3.4 closes a subscription while its timeout waits for
/// delivery, it uses the subscription after freeing it. During this call no timeout of the subscription waits.
void count_timeout(natsConnection*, natsSubscription* subscription, natsMsg* message, void* told) {
  if (message == nullptr) {
    natsSubscription_Destroy(subscription);
    ++*static_cast<std::atomic<std::int64_t>*>(told);
  }
  natsMsg_Destroy(message);
}

template <class Type>
using Owned = std::unique_ptr<Type, void (*)(Type*)>;

Owned<natsConnection> connect(const std::string& url) {
  natsOptions* options = nullptr;
  check(natsOptions_Create(&options), "options");
  const Owned<natsOptions> owned(options, natsOptions_Destroy);
  check(natsOptions_SetURL(options, url.c_str()), url);
  check(natsOptions_SetPingInterval(options, 20), "ping interval");
  // A busy machine may answer late. So libnats gives the connection up after 20 s, as it gives up a request below.
  check(natsOptions_SetMaxPingsOut(options, 1000), "pings without an answer");
  check(natsOptions_UseGlobalMessageDelivery(options, true), "delivery");
  natsConnection* connection = nullptr;
  check(natsConnection_Connect(&connection, options), url);
  return {connection, natsConnection_Destroy};
}

/// Makes requests, and waits until each subscription has timed out once.
void use(natsConnection* connection, const Settings& settings, Results& results) {
  std::vector<Owned<natsSubscription>> subscriptions;
  const auto own = [&](natsSubscription* made) { subscriptions.emplace_back(made, natsSubscription_Destroy); };
  natsSubscription* made = nullptr;
  check(natsConnection_Subscribe(&made, connection, "echo", answer, nullptr), "subscription");
  own(made);
  check(natsConnection_SubscribeSync(&made, connection, "silent"), "subscription");
  own(made);
  for (int i = 0; i < settings.subscriptions; ++i) {
    check(natsConnection_SubscribeTimeout(&made, connection, "quiet", 100, count_timeout, &results.told),
          "subscription");
  }
  while (results.answered + results.failed < settings.requests && !common::interrupted()) {
    natsMsg* reply = nullptr;
    const natsStatus status = natsConnection_RequestString(&reply, connection, "echo", "hello", 20'000);
    ++(status == NATS_OK ? results.answered : results.failed);
    natsMsg_Destroy(reply);
    common::show_progress(
        [&] { return text_of(results.answered) + " of " + text_of(settings.requests) + " requests"; });
  }
  natsMsg* reply = nullptr;
  results.timed_out = natsConnection_RequestString(&reply, connection, "silent", "hello", 50) == NATS_TIMEOUT;
  natsMsg_Destroy(reply);
  const auto give_up = Clock::now() + std::chrono::seconds(20);
  while (results.told != settings.subscriptions && Clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  nats_timers_stats(&results.timer);
  subscriptions.clear();
  natsConnection_Close(connection);
}

bool run(common::Options& options) {
  Settings settings;
  options.number("--timers", settings.timers, {0, 1e6}, "Timers to create, with each library and kind of interval");
  options.number("--requests", settings.requests, {0, 1e9}, "Requests to the server");
  options.number("--subscriptions", settings.subscriptions, {0, 1e5}, "Subscriptions with a timeout of 100 ms");
  options.parse();

  check(nats_Open(-1), "nats_Open");
  const Functions these{natsTimer_Create, natsTimer_Stop, natsTimer_Release};
  const Functions theirs = functions_of_libnats();
  common::Report report("libnats " + std::string(nats_GetVersion()) + " with its timers on a timer of c.h");
  report.section("CPU time to create one of " + text_of(settings.timers) + " timers");
  report.line("equal intervals", create(these, settings.timers, false));
  report.line("random intervals", create(these, settings.timers, true));
  report.line("libnats, equal", create(theirs, settings.timers, false), "without this example");
  report.line("libnats, random", create(theirs, settings.timers, true));

  const Server server;
  // Static, because libnats may still write to it if use() throws.
  static Results results;
  use(connect(server.url()).get(), settings, results);
  nats_CloseAndWait(20'000);
  report.section("Requests to a nats-server");
  report.line("answered", results.answered);
  report.line("failed", results.failed, "must be 0");
  report.line("timed out", results.timed_out ? "yes" : "no", "a request that is not answered; must be yes");
  report.section("Subscriptions with a timeout");
  report.line("told", results.told.load(), "of " + text_of(settings.subscriptions) + ", that no message has come");
  report.section("Timer");
  report.line("scheduled", results.timer.scheduled, "by libnats, the timers above included");
  report.line("expired", results.timer.expired, "pings, and subscriptions");
  common::print(report.text());
  return results.failed == 0 && results.timed_out && results.told == settings.subscriptions;
}

}  // namespace
}  // namespace nats

int main(int argc, char** argv) {
  return common::run_example(
      argc, argv,
      {"nats_timers",
       "libnats with its timers replaced by a library on c.h. Measures the creation of timers. Makes requests to a\n"
       "nats-server that the program starts, and waits for subscriptions with a timeout.",
       "a request failed, or a timeout did not come"},
      nats::run);
}
