#include "harness/process.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace perf {
namespace {

std::chrono::microseconds duration_of(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

std::optional<std::int64_t> voluntary_switches(const std::filesystem::path& task) {
  std::ifstream file(task / "status");
  for (std::string key; file >> key;) {
    if (std::int64_t value = 0; key == "voluntary_ctxt_switches:" && file >> value) return value;
  }
  return std::nullopt;
}

}  // namespace

std::chrono::nanoseconds process_cpu_time() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) throw std::system_error(errno, std::generic_category(), "getrusage");
  return duration_of(usage.ru_utime) + duration_of(usage.ru_stime);
}

std::int64_t resident_bytes() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  if (!(file >> total >> resident)) throw std::runtime_error("cannot read /proc/self/statm");
  return resident * sysconf(_SC_PAGESIZE);
}

std::optional<std::int64_t> wakeups_of_other_threads() {
  const std::string own = std::to_string(syscall(SYS_gettid));
  std::int64_t sum = 0;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    if (task.path().filename() == own) continue;
    const std::optional<std::int64_t> switches = voluntary_switches(task.path());
    if (!switches) return std::nullopt;
    sum += *switches;
  }
  if (error) return std::nullopt;
  return sum;
}

}  // namespace perf
