// A million connections, each with a deadline that every heartbeat puts off: what hwt::KeyedTimer is made for.
//
// connection_pool.cpp shows its use: connect() sets, heartbeat() moves, expire() runs when the heartbeats end.

#include <exception>
#include <iostream>

#include "common/format.h"
#include "interrupt.h"
#include "options.h"
#include "report.h"
#include "runs.h"

namespace pool {
namespace {

int run(const Options& options) {
  catch_interrupts();
  const Results simulated = run_simulated(options);
  bool good = as_promised(simulated);
  write_report(std::cout, "Simulated time, hwt::ManualTimer", simulated_times(options), simulated);
  if (options.live_seconds > 0 && !interrupted()) {
    std::cout << std::endl;
    const Results live = run_live(options);
    good = as_promised(live) && good;
    write_report(std::cout, "Real clock, hwt::HashedWheelTimer", live_times(options), live);
  }
  std::cout.flush();
  if (!std::cout) {
    std::cerr << "keep_alive_pool: cannot write the report\n";
    return 1;
  }
  if (!good) std::cerr << "keep_alive_pool: the timer has broken a promise, see the report\n";
  return good ? 0 : 1;
}

}  // namespace
}  // namespace pool

int main(int argc, char** argv) {
  try {
    const pool::ParsedOptions parsed = pool::parse_options(argc, argv);
    return parsed.options ? pool::run(*parsed.options) : parsed.exit_status;
  } catch (const std::exception& error) {
    std::cerr << "keep_alive_pool: " << common::one_line(error.what()) << '\n';
    return 1;
  }
}
