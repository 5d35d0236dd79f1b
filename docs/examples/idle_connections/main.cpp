// A server that closes idle connections with a PassiveWheel.
//
// In server.h, next_wakeup() bounds epoll_wait(), advance() closes idle connections, and each read postpones a timeout.

#include <sys/resource.h>

#include "client.h"
#include "common/common.h"
#include "descriptor.h"
#include "server.h"

namespace idle {
namespace {

using common::text_of;

/// Raises the limit of open files. Each connection takes two, because both ends are in this process.
void fit_into_open_files(Settings& settings) {
  rlimit limit{};
  checked(getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
  limit.rlim_cur = limit.rlim_max;
  checked(setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
  constexpr rlim_t kOthers = 50;
  const std::size_t fitting = limit.rlim_cur > kOthers + 2 ? (limit.rlim_cur - kOthers) / 2 : 1;
  if (settings.connections <= fitting) return;
  common::print("Only " + common::counted(fitting, "connection") + " instead of " + text_of(settings.connections) +
                ": this process may open " + text_of(limit.rlim_cur) + " files\n");
  settings.active = settings.active * fitting / settings.connections;  // keeps the share
  settings.connections = fitting;
}

/// Returns true if all checks held.
bool report(const Settings& settings, const Figures& server, std::chrono::nanoseconds longest_silence) {
  std::vector<std::chrono::nanoseconds> idle = server.idle_at_close;
  std::sort(idle.begin(), idle.end());
  const auto early = std::lower_bound(idle.begin(), idle.end(), settings.limit) - idle.begin();
  // The server rightly closes active connections if the client was delayed for longer than the limit.
  const bool client_held_up = longest_silence >= settings.limit;
  const std::size_t active_closed = client_held_up ? 0 : server.active_closed;

  common::Report report(common::counted(settings.connections, "connection") + ", " + text_of(settings.active) +
                        " of them active; limit " + text_of(settings.limit) + ", tick " + text_of(settings.tick) +
                        ", for " + text_of(settings.duration));
  report.section("Connections");
  report.line("accepted", server.accepted);
  report.line("closed, idle", idle.size());
  report.line("gone", server.gone, "closed by the client");
  report.line("open at the end", server.open_at_end);
  report.line("active closed", active_closed, "must be 0");
  report.line("overdue", server.overdue, "idle for too long and still open; must be 0");
  if (client_held_up) {
    report.line("held up", server.active_closed, "active, but the delayed client was silent for too long");
  }
  report.section("Idle when closed");
  report.line("limit", settings.limit);
  if (!idle.empty()) {
    report.line("min", idle.front());
    report.line("median", idle[idle.size() / 2]);
    report.line("max", idle.back());
  }
  report.line("early", early, "below the limit; must be 0");
  report.section("Loop");
  report.line("wake-ups", server.wakeups);
  report.line("bytes received", server.bytes, "each read postpones a timeout");
  common::print(report.text());
  return early == 0 && active_closed == 0 && server.overdue == 0;
}

bool run(common::Options& options) {
  Settings settings;
  options.number("--connections", settings.connections, {1, 25'000},
                 "TCP connections; fewer if the limit of open files is too low");
  options.number("--active", settings.active, {0, 25'000},
                 "Connections that are never silent for long; default a tenth");
  options.number("--limit-ms", settings.limit, {20, 3'600'000}, "Longest silence of a connection");
  options.number("--tick-ms", settings.tick, {1, 10'000}, "Tick of the wheel; connections close up to one tick late");
  options.number("--run-ms", settings.duration, {1, 86'400'000}, "Duration after all connections are open");
  options.parse();
  if (!options.given("--active")) settings.active = settings.connections / 10;
  if (settings.active > settings.connections) {
    options.refuse("--active", text_of(settings.active),
                   "at most the " + text_of(settings.connections) + " of --connections");
  }
  fit_into_open_files(settings);

  Server server(settings);
  Client client(settings, server);
  server.run();
  client.stop();
  return report(settings, server.figures(), client.longest_silence());
}

}  // namespace
}  // namespace idle

int main(int argc, char** argv) {
  return common::run_example(
      argc, argv,
      {"idle_connections",
       "A server closes connections that have been silent for too long. Its epoll loop drives one hwt::PassiveWheel.\n"
       "A client keeps some connections active; the others fall silent one after the other.",
       "a connection was closed too early, an active one was closed or an idle one was not"},
      idle::run);
}
