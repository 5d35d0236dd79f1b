#include "harness/child_process.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>

#include "harness/format.h"

namespace perf {
namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

/// Small enough to be written to a pipe as a whole.
struct Answer {
  double value = 0;
  std::array<char, 240> error{};  // empty: none
};

Answer answer_of(const std::function<double()>& work) {
  Answer answer;
  try {
    answer.value = work();
  } catch (const std::exception& error) {
    const std::string text = one_line(error.what(), answer.error.size() - 4);
    std::memcpy(answer.error.data(), text.data(), text.size());
  }
  return answer;
}

}  // namespace

double in_child_process(const std::function<double()>& work) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) fail("pipe");
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // it has ended already
    const Answer answer = answer_of(work);
    _exit(write(ends[1], &answer, sizeof answer) == sizeof answer ? 0 : 1);
  }
  close(ends[1]);
  Answer answer;
  const bool complete = read(ends[0], &answer, sizeof answer) == sizeof answer;
  close(ends[0]);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!complete) throw std::runtime_error("the process that was to measure the memory has ended early");
  if (answer.error[0] != '\0') throw std::runtime_error(answer.error.data());
  return answer.value;
}

}  // namespace perf
