#pragma once

// Measures blocks of calls without a deadline, with the host's own timer and with this library's, in turn.

#include <array>
#include <random>

#include "common/common.h"
#include "common/cpu_time.h"

namespace calls {

/// The timer that has the deadlines of a block's calls.
enum class Limit { None, Own, Ours };

/// Far enough that a call on a busy machine ends before it.
inline constexpr std::chrono::seconds kDeadline{10};

/// The number of calls in flight, of all hosts.
inline constexpr std::size_t kInFlight = 64;

struct Settings {
  int rounds = 100;
  std::int64_t calls = 0;  // of a block
  std::uint64_t seed = 1;
};

/// Parses the options. `calls` is the default of --calls: about a tenth of a second.
inline Settings settings_of(common::Options& options, std::int64_t calls) {
  Settings settings{.calls = calls};
  options.number("--rounds", settings.rounds, {1, 1e6}, "Rounds: each has a block of each kind, in random order");
  options.number("--calls", settings.calls, {1, 1e9}, "Calls in a block");
  options.number("--seed", settings.seed, {0, 0x1p53}, "Seed of the order");
  options.parse();
  return settings;
}

/// Runs the rounds and prints one JSON object. For each round it has the nanoseconds of each block in the order of
/// Limit: the time, and the CPU time of all threads. A first round is not measured. `make_calls(limit, count)` returns
/// when `count` calls have ended, and throws if one failed. An interrupt ends the run after the current round.
template <class MakeCalls>
void run_blocks(const std::string& host, const Settings& settings, const MakeCalls& make_calls) {
  using Clock = std::chrono::steady_clock;
  std::array order{Limit::None, Limit::Own, Limit::Ours};
  for (const Limit limit : order) make_calls(limit, settings.calls);

  std::mt19937_64 random(settings.seed);
  std::string rounds;
  for (int round = 0; round < settings.rounds && !common::interrupted(); ++round) {
    std::array<std::string, order.size()> costs;
    std::shuffle(order.begin(), order.end(), random);
    for (const Limit limit : order) {
      const auto cpu = common::cpu_time_of_process();
      const Clock::time_point start = Clock::now();
      make_calls(limit, settings.calls);
      const std::chrono::nanoseconds took = Clock::now() - start;
      costs[static_cast<std::size_t>(limit)] = '[' + std::to_string(took.count()) + ", " +
                                               std::to_string((common::cpu_time_of_process() - cpu).count()) + ']';
    }
    rounds += (round == 0 ? "[" : ", [") + costs[0] + ", " + costs[1] + ", " + costs[2] + ']';
    common::show_progress(
        [&] { return host + ": " + common::text_of(round + 1) + " of " + common::counted(settings.rounds, "round"); });
  }
  common::print("{\"host\": \"" + host + "\", \"calls\": " + std::to_string(settings.calls) +
                ", \"in_flight\": " + std::to_string(kInFlight) +
                ", \"deadline_s\": " + std::to_string(kDeadline.count()) + ", \"rounds\": [" + rounds + "]}\n");
}

}  // namespace calls
