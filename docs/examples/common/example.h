#pragma once

// Shared by all examples: main(), Ctrl-C, output, the line of progress, and error messages.

#include <chrono>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>

namespace hwt {
class Timeout;
}

namespace common {

class Options;

struct About {
  const char* name;
  const char* text;     // for --help
  const char* failure;  // for --help: "a request was lost", a reason for exit status 1
};

/// The main() of an example. `run` declares and parses its options, works, prints its report, and returns false if a
/// check failed. Returns the exit status.
int run_example(int argc, char** argv, const About& about, bool (*run)(Options&));

/// An invalid argument. The exit status is 2.
struct BadArgument : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Returns true after Ctrl-C or SIGTERM: the run should end early and print its report. A second signal ends the
/// program at once.
bool interrupted() noexcept;
/// The interval at which a run checks interrupted().
inline constexpr std::chrono::milliseconds kLook(50);

/// Prints to stdout. If that fails, run_example() returns 1. Any thread may call it.
void print(const std::string& text);

/// Replaces the last line of a terminal by the text, at most five times a second. Does not call `text` more often, nor
/// if stderr is no terminal, nor after hide_progress_for_good(). Any thread may call it.
void show_progress(const std::function<std::string()>& text);
void hide_progress_for_good();

/// Ends the program with one line for the exception. Use it as on_task_error of a timer.
[[noreturn]] void give_up(std::exception_ptr exception, const hwt::Timeout& timeout) noexcept;

}  // namespace common
