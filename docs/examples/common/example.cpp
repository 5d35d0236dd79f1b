#include "common/example.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

#include "common/options.h"

#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

namespace common {
namespace {

const char* program = "example";
std::atomic<bool> caught{false};
static_assert(std::atomic<bool>::is_always_lock_free, "or a signal handler must not touch it");

std::mutex printing;
// Guarded by `printing`.
int print_error = 0;
bool progress_wanted = false;
std::atomic<bool> progress_shown{false};  // complain() reads it without the lock
std::chrono::steady_clock::time_point next_progress;

extern "C" void note_signal(int) {
  caught.store(true);
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool stderr_is_terminal() {
#if __has_include(<unistd.h>)
  return isatty(STDERR_FILENO) == 1;
#else
  return false;
#endif
}

void clear_progress() {
  if (progress_shown.exchange(false)) std::fputs("\r\033[K", stderr);
}

/// Prints one line on stderr at the first call. Does not allocate.
void complain(const char* what, const char* more = "") noexcept {
  static std::atomic<bool> done{false};
  if (done.exchange(true)) return;
  char line[400];
  const bool over_progress = progress_shown;
  std::snprintf(line, sizeof line, "%s%s: %s%s", over_progress ? "\r\033[K" : "", program, what, more);
  for (char* c = line + (over_progress ? 4 : 0); *c != 0; ++c) {
    if (static_cast<unsigned char>(*c) < 0x20 || *c == 0x7F) *c = '?';
  }
  std::fprintf(stderr, "%s\n", line);
}

/// Precondition: an exception is being handled.
void complain_about_exception() noexcept {
  try {
    throw;
  } catch (const BadArgument& error) {
    complain(error.what(), "; see --help");
  } catch (const std::bad_alloc&) {
    complain("out of memory");
  } catch (const std::system_error& error) {
    const bool thread = error.code() == std::errc::resource_unavailable_try_again;
    complain(error.what(), thread ? " (no memory for a thread, or too many of them)" : "");
  } catch (const std::exception& error) {
    complain(error.what());
  } catch (...) {
    complain("an exception of an unknown type");
  }
}

[[noreturn]] void on_terminate() noexcept {
  if (std::current_exception()) complain_about_exception();
  complain("terminated, perhaps out of memory");
  std::_Exit(1);
}

/// Runs before the constructors of the program's static objects, because they may run out of memory.
[[gnu::constructor(101)]] void set_up_termination() { std::set_terminate(on_terminate); }

/// Returns true if all output was written.
bool all_printed() {
  const std::lock_guard lock(printing);
  clear_progress();
  if (std::fflush(stdout) != 0 && print_error == 0) print_error = errno;
  return print_error == 0;
}

}  // namespace

int run_example(int argc, char** argv, const About& about, bool (*run)(Options&)) {
  program = about.name;
  progress_wanted = stderr_is_terminal();
  std::signal(SIGINT, note_signal);
  std::signal(SIGTERM, note_signal);
  int status = 1;
  try {
    Options options(argc, argv, about);
    if (run(options)) {
      status = 0;
    } else {
      complain("a promise was broken, see the report");
    }
    if (interrupted()) print("\nInterrupted: the run ended early.\n");
  } catch (const HelpGiven&) {
    status = 0;
  } catch (const BadArgument&) {
    complain_about_exception();
    status = 2;
  } catch (...) {
    complain_about_exception();
  }
  if (!all_printed()) {
    complain("cannot print: ", std::strerror(print_error));
    status = 1;
  }
  return status;
}

bool interrupted() noexcept { return caught.load(std::memory_order_relaxed); }

void print(const std::string& text) {
  const std::lock_guard lock(printing);
  clear_progress();
  if ((std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) && print_error == 0) print_error = errno;
}

void show_progress(const std::function<std::string()>& text) {
  const std::lock_guard lock(printing);
  const auto now = std::chrono::steady_clock::now();
  if (!progress_wanted || now < next_progress) return;
  next_progress = now + 4 * kLook;
  progress_shown = true;
  std::fprintf(stderr, "\r\033[K%s", text().c_str());
}

void hide_progress_for_good() {
  const std::lock_guard lock(printing);
  progress_wanted = false;
}

void give_up(std::exception_ptr exception, const hwt::Timeout&) noexcept {
  try {
    std::rethrow_exception(std::move(exception));
  } catch (...) {
    on_terminate();
  }
}

}  // namespace common
