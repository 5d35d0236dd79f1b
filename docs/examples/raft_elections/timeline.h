#pragma once

#include <array>
#include <condition_variable>

#include "common/common.h"

namespace raft {

enum class Happening { Candidate, Leader, SteppedDown, Killed };

struct Leadership {
  int node;
  std::uint64_t term;
};

/// Thrown by the waiting functions after Ctrl-C.
struct Interrupted {};

/// Prints events and keeps those that the checks need. Any thread may call it.
class Timeline {
 public:
  using Clock = std::chrono::steady_clock;

  void record(int node, std::uint64_t term, Happening what) {
    constexpr std::array<const char*, 4> kText = {"becomes candidate", "becomes leader", "steps down", "is killed"};
    const std::lock_guard lock(mutex_);
    const std::string ms =
        common::text_of(std::chrono::floor<std::chrono::milliseconds>(Clock::now() - start_).count());
    common::print(std::string(8 - std::min<std::size_t>(8, ms.size()), ' ') + ms + " ms  node " +
                  common::text_of(node) + "  term " + common::text_of(term) + "  " +
                  kText[static_cast<std::size_t>(what)] + '\n');
    if (what == Happening::Leader) {
      leading_[node] = term;
      const auto [first, is_first] = leader_in_.emplace(term, node);
      if (!is_first && first->second != node) two_leaders_ = term;
    } else {
      leading_.erase(node);
    }
    changed_.notify_all();
  }

  /// Waits for a node that leads in `term` or later. Returns the leader with the highest term.
  std::optional<Leadership> wait_for_leader(std::uint64_t term, std::chrono::milliseconds within) {
    std::unique_lock lock(mutex_);
    const bool led = wait(lock, "waiting for a leader", within, [&] { return leader() && leader()->term >= term; });
    return led ? leader() : std::nullopt;
  }

  /// Waits until no node leads.
  bool wait_for_no_leader(std::chrono::milliseconds within) {
    std::unique_lock lock(mutex_);
    return wait(lock, "waiting for the leader to step down", within, [&] { return !leader(); });
  }

  void let_pass(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    wait(lock, "letting time pass", time, [] { return false; });
  }

  /// Returns a term in which two nodes led.
  std::optional<std::uint64_t> term_with_two_leaders() const {
    const std::lock_guard lock(mutex_);
    return two_leaders_;
  }

 private:
  template <class Done>
  bool wait(std::unique_lock<std::mutex>& lock, const char* what, std::chrono::milliseconds within, const Done& done) {
    const Clock::time_point start = Clock::now();
    while (!changed_.wait_until(lock, std::min(start + within, Clock::now() + common::kLook), done)) {
      if (common::interrupted()) throw Interrupted();
      if (Clock::now() >= start + within) return false;
      common::show_progress([&] {
        return std::string(what) + ": " + common::in_seconds(Clock::now() - start) + " of " + common::text_of(within);
      });
    }
    return true;
  }

  std::optional<Leadership> leader() const {
    std::optional<Leadership> highest;
    for (const auto& [node, term] : leading_) {
      if (!highest || term > highest->term) highest = Leadership{node, term};
    }
    return highest;
  }

  const Clock::time_point start_ = Clock::now();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::map<int, std::uint64_t> leading_;    // node -> term
  std::map<std::uint64_t, int> leader_in_;  // term -> node, all that ever led
  std::optional<std::uint64_t> two_leaders_;
};

}  // namespace raft
