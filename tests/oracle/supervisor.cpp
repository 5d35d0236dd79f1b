#include "tests/oracle/supervisor.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "perf/random.h"
#include "tests/oracle/round.h"

namespace hwt::oracle {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr double kMiB = 1 << 20;

Totals* shared_totals() {
  void* const memory = mmap(nullptr, sizeof(Totals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  return ::new (memory) Totals;
}

/// The process under load. It does not outlive its supervisor, which might have stopped it.
[[noreturn]] void work(std::uint64_t seed, Totals& totals, pid_t supervisor) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != supervisor) _exit(1);
  setpriority(PRIO_PROCESS, 0, 19);  // others come first
#if defined(__GLIBC__)
  // Unless a program sets its trim threshold, glibc raises it when a large block is freed. Then the heap of each thread
  // would keep its free end, which malloc_trim() leaves.
  mallopt(M_TRIM_THRESHOLD, 128 << 10);
#endif
  for (; !totals.over; ++seed) {
    run_round(seed, true, totals);
#if defined(__GLIBC__)
    malloc_trim(0);  // free memory must not hide used memory
#endif
  }
  std::fflush(stdout);
  _exit(0);
}

struct Sample {
  double seconds;
  std::int64_t operations, resident, heap_at_rest;
};

class Supervisor {
 public:
  Supervisor(std::uint64_t seed, std::chrono::seconds length, const char* samples)
      : seed_(seed),
        length_(length),
        look_(std::clamp<steady_clock::duration>(length_ / 900, 250ms, 5s)),
        csv_(samples) {
    csv_ << "seconds,operations,resident_bytes,heap_at_rest_bytes\n" << std::flush;
    if (!csv_) throw std::runtime_error(std::string("cannot write: ") + samples);
  }

  bool run() {
    std::fflush(stdout);
    const pid_t self = getpid();
    child_ = fork();
    if (child_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (child_ == 0) work(seed_, totals_, self);
    const auto begin = steady_clock::now();
    auto next_look = begin;
    auto next_stall = begin + 1s;
    while (!ended_) {
      const auto now = steady_clock::now();
      const Seconds passed = now - begin;
      if (passed >= length_) totals_.over = true;
      if (now >= next_look) {
        look(passed.count());
        next_look = now + look_;
      }
      if (now >= next_stall) {
        stall();
        next_stall = steady_clock::now() + std::chrono::milliseconds(random_.between(500, 8'000));
      }
      std::this_thread::sleep_for(50ms);
      ended_ = ended_ || waitpid(child_, &status_, WNOHANG) == child_;
    }
    return report(Seconds(steady_clock::now() - begin).count());
  }

 private:
  /// Most are short; some are longer than most delays of the load.
  void stall() {
    const bool is_long = random_.next() % 32 == 0;
    kill(child_, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(is_long ? 2'000 : random_.between(1, 200)));
    kill(child_, SIGCONT);
    ++stalls_;
  }

  void look(double seconds) {
    std::ifstream file("/proc/" + std::to_string(child_) + "/statm");
    std::int64_t total = 0, resident = 0;
    if (!(file >> total >> resident) || resident == 0) return;  // it is ending
    samples_.push_back({seconds, totals_.operations(), resident * sysconf(_SC_PAGESIZE), totals_.heap_at_rest});
    const Sample& sample = samples_.back();
    csv_ << sample.seconds << ',' << sample.operations << ',' << sample.resident << ',' << sample.heap_at_rest << '\n'
         << std::flush;
    if (seconds >= next_line_) {
      std::printf("%6.0f s: %.3g operations, %.1f MiB resident\n", seconds, static_cast<double>(sample.operations),
                  static_cast<double>(sample.resident) / kMiB);
      std::fflush(stdout);
      next_line_ += std::max(10.0, static_cast<double>(length_.count()) / 60);
    }
    end_if_it_hangs(sample.operations);
  }

  /// By looks, not by a clock: the supervisor itself may be stopped.
  void end_if_it_hangs(std::int64_t operations) {
    looks_without_progress_ = operations == last_operations_ ? looks_without_progress_ + 1 : 0;
    last_operations_ = operations;
    if (looks_without_progress_ * look_ < 120s) return;
    std::printf("it hangs\n");
    kill(child_, SIGABRT);
  }

  bool report(double seconds) const {
    const auto line = [](const char* name, const Count& count) {
      std::printf("  %-20s %16lld\n", name, static_cast<long long>(count));
    };
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    std::printf("\n%.0f s, %ld s of processor time, %d stalls\n", seconds,
                usage.ru_utime.tv_sec + usage.ru_stime.tv_sec, stalls_);
    std::printf("  %-20s %16lld\n", "operations", static_cast<long long>(totals_.operations()));
    line("  scheduled", totals_.scheduled);
    line("  cancelled", totals_.cancelled);
    line("  expired", totals_.expired);
    line("timers", totals_.rounds);
    line("threads", totals_.threads);
    line("refused", totals_.refused);
    line("unprocessed", totals_.unprocessed);
    line("dropped", totals_.dropped);
    line("task errors", totals_.task_errors);
    line("failed allocations", totals_.failed_allocations);
    std::printf("  %-20s %13.0f ms\n", "latest", static_cast<double>(totals_.latest_ns) / 1e6);
    const bool flat = report_memory();
    const bool ended_well = WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
    if (!ended_well) std::printf("the process under load has failed: wait status %d\n", status_);
    return ended_well && flat;
  }

  /// The second quarter is held against the last: in the first, everything has yet to grow to its size.
  bool report_memory() const {
    const auto median = [this](std::size_t quarter, std::int64_t Sample::* what) {
      std::vector<std::int64_t> values;
      for (std::size_t i = samples_.size() * quarter / 4; i < samples_.size() * (quarter + 1) / 4; ++i) {
        values.push_back(samples_[i].*what);
      }
      if (values.empty()) return 0.0;
      std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
      return static_cast<double>(values[values.size() / 2]) / kMiB;
    };
    constexpr double kNoise = 16;  // MiB: rounds differ in size
    const double before = median(1, &Sample::resident);
    const double after = median(3, &Sample::resident);
    std::printf("  %-20s %8.1f then %.1f MiB: medians of the second and the last quarter\n", "resident", before, after);
    std::printf("  %-20s %8.1f then %.1f KiB in use between timers\n", "heap", median(1, &Sample::heap_at_rest) * 1024,
                median(3, &Sample::heap_at_rest) * 1024);
    return after <= before + kNoise;
  }

  const std::uint64_t seed_;
  const std::chrono::seconds length_;
  const steady_clock::duration look_;
  Totals& totals_ = *shared_totals();
  perf::Random random_{1};
  std::ofstream csv_;
  std::vector<Sample> samples_;
  pid_t child_ = -1;
  int status_ = -1;
  bool ended_ = false;
  int stalls_ = 0;
  std::int64_t last_operations_ = -1;
  int looks_without_progress_ = 0;
  double next_line_ = 0;
};

}  // namespace

bool supervise(std::uint64_t seed, std::chrono::seconds length, const char* samples) {
  return Supervisor(seed, length, samples).run();
}

}  // namespace hwt::oracle
