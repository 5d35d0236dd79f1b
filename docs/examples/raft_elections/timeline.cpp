#include "timeline.h"

#include <array>
#include <iomanip>
#include <ostream>

namespace raft {

void Timeline::record(int node, std::uint64_t term, Happening what) {
  constexpr std::array<const char*, 4> kText = {"becomes candidate", "becomes leader", "steps down", "is killed"};
  const std::lock_guard lock(mutex_);
  out_ << std::setw(7) << elapsed().count() << " ms  node " << node << "  term " << term << "  "
       << kText[static_cast<std::size_t>(what)] << std::endl;
  if (what == Happening::Leader) {
    leading_[node] = term;
    const auto [first, is_first] = leader_in_.emplace(term, node);
    if (!is_first && first->second != node) two_leaders_ = term;
  } else {
    leading_.erase(node);
  }
  changed_.notify_all();
}

void Timeline::interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  changed_.notify_all();
}

bool Timeline::interrupted() const {
  const std::lock_guard lock(mutex_);
  return interrupted_;
}

std::optional<Leadership> Timeline::wait_for_leader(std::uint64_t term, std::chrono::milliseconds within) const {
  std::unique_lock lock(mutex_);
  const auto led = [&] { return leader() && leader()->term >= term; };
  changed_.wait_for(lock, within, [&] { return interrupted_ || led(); });
  return led() ? leader() : std::nullopt;
}

bool Timeline::wait_for_no_leader(std::chrono::milliseconds within) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, within, [&] { return interrupted_ || !leader(); });
  return !leader();
}

void Timeline::let_pass(std::chrono::milliseconds time) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [this] { return interrupted_; });
}

std::optional<std::uint64_t> Timeline::term_with_two_leaders() const {
  const std::lock_guard lock(mutex_);
  return two_leaders_;
}

std::chrono::milliseconds Timeline::elapsed() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start_);
}

std::optional<Leadership> Timeline::leader() const {
  std::optional<Leadership> highest;
  for (const auto& [node, term] : leading_) {
    if (!highest || term > highest->term) highest = Leadership{node, term};
  }
  return highest;
}

}  // namespace raft
