#pragma once

// What every example has: its main(), Ctrl-C, what it prints, the line of progress, and one line for every error.

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
  const char* failure;  // "a request was lost": what makes the exit status 1
};

/// The main() of an example. `run` declares its options and parses them, works, and prints its report; false: a promise
/// was broken. Returns the exit status.
int run_example(int argc, char** argv, const About& about, bool (*run)(Options&));

/// Not a valid argument: the exit status is 2.
struct BadArgument : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Ctrl-C or SIGTERM came: end early, and print the report. A second one ends the program at once.
bool interrupted() noexcept;
/// How often a run looks whether it was interrupted, and tells its progress.
inline constexpr std::chrono::milliseconds kLook(50);

/// Prints to stdout; what cannot be printed makes the program fail at its end. From any thread.
void print(const std::string& text);

/// Replaces the last line of a terminal by the text, which is not asked for where it would not be seen. From any
/// thread.
void show_progress(const std::function<std::string()>& text);
void hide_progress_for_good();

/// For on_task_error of a timer: ends the program, with one line for the exception.
[[noreturn]] void give_up(std::exception_ptr exception, const hwt::Timeout& timeout) noexcept;

}  // namespace common
