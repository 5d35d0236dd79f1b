// Requests over TCP, each with a timeout on one shared timer: what hashed_wheel_timer is made for.
//
// client.cpp shows the use of the timer: send_request() schedules, take_answer() cancels, time_out() runs on expiry.

#include <cerrno>
#include <chrono>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <system_error>

#include "client.h"
#include "common/format.h"
#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "latency_source.h"
#include "options.h"
#include "picture.h"
#include "report.h"
#include "server.h"
#include "worker_clock.h"

#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

namespace rpc {
namespace {

bool stderr_is_terminal() {
#if __has_include(<unistd.h>)
  return isatty(STDERR_FILENO) == 1;
#else
  return false;
#endif
}

LatencySource make_latency_source(const Options& options) {
  if (!options.latencies_file.empty()) {
    return {options.never_answer, options.seed, read_latencies(options.latencies_file)};
  }
  const std::chrono::duration<double, std::milli> median(options.latency_median_ms);
  return {options.never_answer, options.seed, std::chrono::duration_cast<std::chrono::nanoseconds>(median),
          options.latency_sigma};
}

bool save_picture(const Options& options, const Results& results) {
  errno = 0;
  std::ofstream file(options.svg_file);
  if (file) write_picture(file, options, results);
  file.close();  // so that an error of the last write shows as well
  if (file) return true;
  std::cerr << "rpc_timeouts: --svg " << common::one_line(options.svg_file)
            << ": cannot write: " << std::generic_category().message(errno) << '\n';
  return false;
}

int run(const Options& options) {
  using Clock = std::chrono::steady_clock;
  LatencySource latencies = make_latency_source(options);

  // The order matters: the server reports to the client, and the timer's tasks use the client, so it goes last.
  const std::chrono::duration<double> duration(options.seconds);
  Client client({.in_flight = options.in_flight,
                 .connections = options.connections,
                 .timeout = options.timeout,
                 .duration = std::chrono::duration_cast<std::chrono::nanoseconds>(duration),
                 .show_progress = !options.quiet && stderr_is_terminal()});
  const WorkerClock worker_clock;
  hwt::HashedWheelTimer timer({.tick_duration = options.tick, .thread_factory = worker_clock.thread_factory()});
  Server server(std::move(latencies), [&client](const std::string& what) { client.fail(what); });
  server.start();
  client.connect(server.port());

  const Clock::time_point started = Clock::now();
  client.run(timer);
  const WorkerUse worker{worker_clock.cpu_time(), Clock::now() - started};
  server.stop();
  timer.stop();

  const Results results = client.results();
  write_report(std::cout, options, results, worker, timer.stats());
  std::cout.flush();
  bool failed = results.lost != 0 || results.doubled != 0 || results.early != 0;
  if (!std::cout) {
    std::cerr << "rpc_timeouts: cannot write the report: " << std::generic_category().message(errno) << '\n';
    failed = true;
  }
  if (save_picture(options, results)) {
    std::cout << "\nPicture: " << options.svg_file << std::endl;
  } else {
    failed = true;
  }
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace rpc

int main(int argc, char** argv) {
  try {
    const rpc::ParsedOptions parsed = rpc::parse_options(argc, argv);
    return parsed.options ? rpc::run(*parsed.options) : parsed.exit_status;
  } catch (const rpc::BadLatencies& error) {
    std::cerr << "rpc_timeouts: " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "rpc_timeouts: " << common::one_line(error.what()) << '\n';
    return 1;
  }
}
