#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <mutex>
#include <optional>

namespace raft {

enum class Happening { Candidate, Leader, SteppedDown, Killed };

struct Leadership {
  int node;
  std::uint64_t term;
};

/// Prints what happens as it happens, and keeps what the checks need. Any thread.
class Timeline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Timeline(std::ostream& out) : out_(out) {}

  void record(int node, std::uint64_t term, Happening what);

  /// Ends all waiting, now and later.
  void interrupt();
  bool interrupted() const;

  /// Waits for a node to lead in `term` or a later one; the one with the highest term.
  std::optional<Leadership> wait_for_leader(std::uint64_t term, std::chrono::milliseconds within) const;

  /// Waits until no node leads.
  bool wait_for_no_leader(std::chrono::milliseconds within) const;

  /// Just waits.
  void let_pass(std::chrono::milliseconds time) const;

  /// Two nodes have led in this term.
  std::optional<std::uint64_t> term_with_two_leaders() const;

  std::chrono::milliseconds elapsed() const;

 private:
  std::optional<Leadership> leader() const;

  std::ostream& out_;
  const Clock::time_point start_ = Clock::now();

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  // Guarded by mutex_.
  bool interrupted_ = false;
  std::map<int, std::uint64_t> leading_;    // node -> term
  std::map<std::uint64_t, int> leader_in_;  // term -> node, all that ever led
  std::optional<std::uint64_t> two_leaders_;
};

}  // namespace raft
