#include "perf/workloads/process.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace hwt::perf {
namespace {

std::chrono::microseconds duration_of(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

/// Returns the voluntary context switches of all threads except the calling one, or nothing if the system does not
/// count them.
std::optional<std::int64_t> wakeups_of_other_threads() {
  const std::string own = std::to_string(syscall(SYS_gettid));
  std::int64_t sum = 0;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    if (task.path().filename() == own) continue;
    std::ifstream file(task.path() / "status");
    std::string key;
    while (file >> key && key != "voluntary_ctxt_switches:") {
    }
    std::int64_t switches = 0;
    if (!(file >> switches)) return std::nullopt;
    sum += switches;
  }
  if (error) return std::nullopt;
  return sum;
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

Json at_rest(const Options& options) {
  std::this_thread::sleep_for(2 * options.tick() + std::chrono::milliseconds(500));
  // Reads the files of the threads outside the measured CPU time.
  const auto wakeups_before = wakeups_of_other_threads();
  const std::chrono::nanoseconds cpu_before = process_cpu_time();
  const auto begin = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(options.seconds);
  const std::chrono::duration<double, std::milli> cpu = process_cpu_time() - cpu_before;
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  const auto wakeups_after = wakeups_of_other_threads();
  Json figures = {{"cpu_ms_per_s", cpu.count() / wall.count()}, {"wakeups_per_s", nullptr}};
  if (wakeups_before && wakeups_after) {
    figures["wakeups_per_s"] = static_cast<double>(*wakeups_after - *wakeups_before) / wall.count();
  }
  return figures;
}

}  // namespace hwt::perf
