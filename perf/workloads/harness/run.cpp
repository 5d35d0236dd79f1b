#include "harness/run.h"

#include <cerrno>
#include <exception>
#include <iostream>
#include <string>
#include <system_error>

#include "harness/format.h"

namespace perf {
namespace {

void flush() {
  errno = 0;
  std::cout.flush();
  if (!std::cout) throw std::system_error(errno, std::generic_category(), "cannot write to stdout");
}

void print(const std::string& line) {
  std::cout << line << '\n';
  flush();
}

void run_rounds(const Runner& runner, const Options& options) {
  if (runner.one_loop && options.threads > 1) {
    return print(unsupported_line(runner, options, "no cancel across threads"));
  }
  for (int round = 1; round <= options.warmup; ++round) runner.measure(options);
  for (int round = 1; round <= options.rounds; ++round) {
    print(round_line(runner, options, round, runner.measure(options)));
  }
}

std::vector<std::string> names_of(const std::vector<Runner>& timers) {
  std::vector<std::string> names;
  for (const Runner& timer : timers) names.push_back(timer.timer);
  return names;
}

}  // namespace

int run(const Runner& runner, int argc, char** argv) { return run(std::vector{runner}, argc, argv); }

int run(const std::vector<Runner>& timers, int argc, char** argv) {
  try {
    const ParsedOptions parsed = parse_options(argc, argv, timers.front().name, names_of(timers));
    if (!parsed.options) {
      flush();
      return parsed.exit_status;
    }
    const Runner& runner = timers[parsed.options->timer];
    if (parsed.options->describe) {
      print(description_line(runner));
    } else {
      run_rounds(runner, *parsed.options);
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << timers.front().name << ": " << one_line(error.what()) << '\n';
    return 1;
  }
}

}  // namespace perf
