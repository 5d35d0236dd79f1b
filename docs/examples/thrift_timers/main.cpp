// Calls to a server of Thrift with limits on wheel_timer_manager.h; and the costs of this TimerManager and Thrift's
// own.

#include <atomic>
#include <random>

#include "client.h"
#include "common/common.h"
#include "common/cpu_time.h"
#include "server.h"
#include "wheel_timer_manager.h"

namespace thrift_timers {
namespace {

using common::cpu_time_of_process;
using common::text_of;
using concurrency::TimerManager;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kShort{50};
constexpr std::chrono::seconds kLong{60};

struct Settings {
  std::int64_t calls = 10'000;
  int silent = 20;
  std::int64_t pending = 100'000;
  std::int64_t pairs = 100'000;  // of each round
  int rounds = 9;
};

std::shared_ptr<TimerManager> started(std::shared_ptr<TimerManager> manager) {
  manager->threadFactory(std::make_shared<concurrency::ThreadFactory>());
  manager->start();
  return manager;
}

struct Results {
  std::int64_t answered = 0;
  std::int64_t failed = 0;
  std::int64_t ended = 0;  // by the timer
  std::int64_t early = 0;
  std::size_t left = 0;
};

/// Makes calls that are answered, then calls that are not.
Results call(const Settings& settings) {
  Results results;
  const auto timers = started(std::make_shared<WheelTimerManager>());
  const Server server;
  Client client(timers, server.port());
  while (results.answered + results.failed < settings.calls && !common::interrupted()) {
    ++(client.call("echo", kLong) ? results.answered : results.failed);
    common::show_progress([&] { return text_of(results.answered) + " of " + text_of(settings.calls) + " calls"; });
  }
  for (int i = 0; i < settings.silent; ++i) {
    const auto start = Clock::now();
    ++(client.call("silent", kShort) ? results.failed : results.ended);
    if (Clock::now() - start < kShort) ++results.early;
  }
  results.left = timers->taskCount();
  return results;
}

struct Task final : concurrency::Runnable {
  void run() override {}
};

/// The pending timers of one thread.
class Pending {
 public:
  Pending(TimerManager& manager, std::int64_t count) : manager_(manager), timers_(static_cast<std::size_t>(count)) {
    for (std::size_t i = 0; i < timers_.size(); ++i) tasks_.push_back(std::make_shared<Task>());
    for (std::size_t i = 0; i < timers_.size(); ++i) timers_[i] = manager_.add(tasks_[i], kLong);
  }
  std::size_t size() const { return timers_.size(); }
  void replace(std::size_t i) {
    manager_.remove(timers_[i]);
    timers_[i] = manager_.add(tasks_[i], kLong);
  }
  void replace_by_task(std::size_t i) {
    manager_.remove(tasks_[i]);
    timers_[i] = manager_.add(tasks_[i], kLong);
  }

 private:
  TimerManager& manager_;
  std::vector<std::shared_ptr<Task>> tasks_;
  std::vector<TimerManager::Timer> timers_;
};

using Times = std::vector<std::chrono::nanoseconds>;

/// One way to remove a timer and add another, measured with both managers.
struct Way {
  const char* name;
  int threads;
  bool random;
  bool by_task;
  Times wheel = {};
  Times own = {};
};

/// Returns the CPU time of the process for a pair.
std::chrono::nanoseconds measure(std::shared_ptr<TimerManager> made, const Way& way, const Settings& settings,
                                 unsigned seed) {
  const auto manager = started(std::move(made));
  std::vector<Pending> pending;
  for (int i = 0; i < way.threads; ++i) pending.emplace_back(*manager, settings.pending / way.threads);
  const std::int64_t pairs = std::max<std::int64_t>(1, settings.pairs / (way.by_task ? 1000 : way.threads));
  const auto replace = [&](Pending& own, unsigned number) {
    std::mt19937_64 random(seed + number);
    for (std::int64_t i = 0; i < pairs; ++i) {
      const std::size_t at = (way.random ? random() : static_cast<std::size_t>(i)) % own.size();
      way.by_task ? own.replace_by_task(at) : own.replace(at);
    }
  };
  const auto start = cpu_time_of_process();
  {
    std::vector<std::jthread> threads;
    for (Pending& own : pending) threads.emplace_back([&] { replace(own, static_cast<unsigned>(&own - &pending[0])); });
  }
  return (cpu_time_of_process() - start) / (pairs * way.threads);
}

std::chrono::nanoseconds median(Times values) {
  if (values.empty()) return {};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<Way> measure_all(const Settings& settings) {
  std::vector<Way> ways{{"in order, 1 thread", 1, false, false},
                        {"in order, 2 threads", 2, false, false},
                        {"at random, 1 thread", 1, true, false},
                        {"at random, 2 threads", 2, true, false},
                        {"by task, 1 thread", 1, true, true}};
  for (int round = 0; round < settings.rounds; ++round) {
    for (Way& way : ways) {
      if (common::interrupted()) return ways;
      const auto seed = static_cast<unsigned>(round);
      way.wheel.push_back(measure(std::make_shared<WheelTimerManager>(), way, settings, seed));
      way.own.push_back(measure(std::make_shared<TimerManager>(), way, settings, seed));
      common::show_progress([&] { return text_of(round) + " of " + common::counted(settings.rounds, "round"); });
    }
  }
  return ways;
}

void report(const Settings& settings, const Results& results, const std::vector<Way>& ways) {
  common::Report report("Thrift with its timers on hwt::HashedWheelTimer");
  report.section("Calls to a TThreadedServer");
  report.line("answered", results.answered);
  report.line("failed", results.failed, "must be 0");
  report.line("ended", results.ended,
              "by their limit, of " + common::counted(settings.silent, "call") + " without answer");
  report.line("early", results.early, "must be 0");
  report.line("left", results.left, "timers; must be 0");
  report.section("CPU time to remove a timer and add another, of " + text_of(settings.pending));
  std::vector<std::vector<std::string>> table{{"", "wheel", "Thrift's own", "ratio"}};
  for (const Way& way : ways) {
    const auto wheel = median(way.wheel);
    const auto own = median(way.own);
    const double ratio = own.count() == 0 ? 0 : static_cast<double>(wheel.count()) / static_cast<double>(own.count());
    table.push_back({way.name, text_of(wheel), text_of(own), common::formatted("%.2g", ratio)});
  }
  report.table(table);
  common::print(report.text());
}

bool run(common::Options& options) {
  Settings settings;
  options.number("--calls", settings.calls, {0, 1e9}, "Calls that the server answers");
  options.number("--silent", settings.silent, {0, 1000}, "Calls that it does not answer, with a limit of 50 ms");
  options.number("--pending", settings.pending, {2, 1e6}, "Timers that are pending while costs are measured");
  options.number("--pairs", settings.pairs, {1, 1e7}, "Pairs of remove() and add() in a round");
  options.number("--rounds", settings.rounds, {0, 1e6}, "Rounds, of which the medians are reported");
  options.parse();

  const Results results = call(settings);
  report(settings, results, measure_all(settings));
  return results.failed == 0 && results.early == 0 && results.left == 0 && results.ended == settings.silent;
}

}  // namespace
}  // namespace thrift_timers

int main(int argc, char** argv) {
  return common::run_example(argc, argv,
                             {"thrift_timers",
                              "Calls to a server of Thrift, whose limits are on a TimerManager with a "
                              "hwt::HashedWheelTimer. Measures the CPU\n"
                              "time of its timers, compared with Thrift's own TimerManager.",
                              "a call failed, or a limit ended a call early or not at all"},
                             thrift_timers::run);
}
