// A server that closes idle connections: what PassiveWheel is made for.
//
// server.cpp has the loop: next_wakeup() bounds epoll_wait(), advance() closes who is due, each byte received
// postpones. connection.h shows the node: the connection is its own timeout.

#include <sys/resource.h>
#include <sys/signalfd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <system_error>

#include "client.h"
#include "common/format.h"
#include "descriptor.h"
#include "options.h"
#include "report.h"
#include "server.h"

namespace idle {
namespace {

/// Readable after Ctrl-C. To be called before there are threads, so that none of them takes the signal.
Descriptor catch_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  if (const int error = pthread_sigmask(SIG_BLOCK, &signals, nullptr); error != 0) {
    throw std::system_error(error, std::generic_category(), "pthread_sigmask");
  }
  return Descriptor(checked(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd"));
}

/// How many files this process may have open, after it has asked for as many as it can get.
std::size_t allow_open_files() {
  rlimit limit{};
  checked(getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
  limit.rlim_cur = limit.rlim_max;
  checked(setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
  return static_cast<std::size_t>(limit.rlim_cur);
}

std::string number_text(std::size_t number) { return common::with_thousands(static_cast<std::int64_t>(number)); }
std::string connections_text(std::size_t number) {
  return common::counted(static_cast<std::int64_t>(number), "connection");
}

/// Each connection takes two descriptors, since both of its ends are in this process.
void fit_into(std::size_t files, Options& options) {
  constexpr std::size_t kOthers = 50;
  const std::size_t fitting = files > kOthers + 2 ? (files - kOthers) / 2 : 1;
  if (options.connections <= fitting) return;
  std::cout << "Only " << connections_text(fitting) << " instead of " << number_text(options.connections)
            << ": this process may open " << number_text(files) << " files\n";
  options.active = options.active * fitting / options.connections;  // the same share, so that some still fall silent
  options.connections = fitting;
}

int run(Options options) {
  const Descriptor signals = catch_signals();
  fit_into(allow_open_files(), options);
  std::cout << connections_text(options.connections) << ", " << number_text(options.active) << " of them active; limit "
            << options.limit.count() << " ms, tick " << options.tick.count() << " ms, for " << options.duration.count()
            << " ms\n\n"
            << std::flush;

  Server server(options, signals.get());
  Client client(options, server.port(), [&server] { server.stop(); });
  server.run();
  client.stop();

  const bool good = write_report(std::cout, options, server.figures(), client.longest_silence());
  std::cout.flush();
  if (!std::cout) throw std::runtime_error("cannot write the report");
  return good ? 0 : 1;
}

}  // namespace
}  // namespace idle

int main(int argc, char** argv) {
  try {
    const idle::ParsedOptions parsed = idle::parse_options(argc, argv);
    return parsed.options ? idle::run(*parsed.options) : parsed.exit_status;
  } catch (const std::exception& error) {
    std::cerr << "idle_connections: " << error.what() << '\n';
    return 1;
  }
}
