// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/origin.h"

#include <algorithm>
#include <array>
#include <vector>

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/memory/origin_table.h"
#include "hashed_wheel_timer/internal/memory/slab.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt {

using internal::Node;
using internal::SlabDirectory;
using internal::Trace;
using std::chrono::steady_clock;

namespace {

/// Calls visit(id, trace, deadline) for the node at this place of a slab with traces, if it is a pending timeout.
///
/// This thread reads the word, the deadline and the trace of a node, and then the word again. Meanwhile other threads
/// may end the timeout and schedule another one in the node. They raise the generation first, and then store the
/// deadline and the trace with release. This thread loads both with acquire. So if it reads the deadline or the trace
/// of the later timeout, it also reads the later generation, and skips the node.
template <class Visit>
void visit_node(const SlabDirectory::Slot& slab, std::uint32_t place, const Visit& visit) {
  const Node& node = slab.nodes[place];
  const std::uint64_t seen = node.word.load(std::memory_order_acquire);
  // The word of a node whose memory went back to the system is 0, or still the word of a free node. A word of 0 reads
  // as pending without a reference. No such timeout exists, because the timer has a reference to each pending one.
  if (!Node::pending(seen) || (seen & Node::kReferences) == 0) return;
  const std::int64_t deadline = node.deadline.load(std::memory_order_acquire);
  const std::uint64_t trace = slab.traces[place].load(std::memory_order_acquire);
  const std::uint64_t again = node.word.load(std::memory_order_relaxed);
  if (!Node::pending(again) || Node::generation_of(again) != Node::generation_of(seen)) return;
  const bool named = (seen & Node::kNamed) != 0;
  const internal::NodeName name(slab.first_index + place, Node::generation_of(seen));
  visit(TimeoutId::from_value(named ? name.value() : 0), Trace(trace),
        steady_clock::time_point(std::chrono::nanoseconds(deadline)));
}

/// Calls visit(id, trace, deadline) for the pending timeouts of a core whose timer traces origins.
template <class Visit>
void visit_traced(std::uint64_t core_id, const Visit& visit) {
  SlabDirectory::for_each_traced(core_id, [&](const SlabDirectory::Slot& slab) {
    slab.entry.for_each_node([&](std::uint32_t place) { visit_node(slab, place, visit); });
  });
}

}  // namespace

std::string Origin::describe() const {
  std::string described = text_;
  if (line_ != 0) described.append(":").append(std::to_string(line_));
  return described;
}

void Timer::visit_pending(void (*visit)(void* context, const TracedTimeout& timeout), void* context) const {
  visit_traced(core_->id(), [&](TimeoutId id, Trace trace, steady_clock::time_point deadline) {
    visit(context, {id, trace.origin(), trace.scheduled(), deadline});
  });
}

std::vector<PendingOrigin> Timer::pending_by_origin() const {
  std::vector<PendingOrigin> found;
  std::array<std::uint16_t, Trace::kOrigins> place_of{};  // by number; 0: not found so far
  visit_traced(core_->id(), [&](TimeoutId, Trace trace, steady_clock::time_point deadline) {
    std::uint16_t& place = place_of[trace.number()];
    if (place == 0) {
      // Several numbers may be of one line, if several libraries have compiled it.
      const Origin origin = trace.origin();
      const auto same =
          std::find_if(found.begin(), found.end(), [&](const PendingOrigin& other) { return other.origin == origin; });
      place = static_cast<std::uint16_t>(same - found.begin() + 1);
      if (same == found.end()) found.push_back({.origin = origin});
    }
    PendingOrigin& entry = found[place - 1U];
    ++entry.count;
    entry.oldest = std::min(entry.oldest, trace.scheduled());
    entry.next_deadline = std::min(entry.next_deadline, deadline);
  });
  std::ranges::sort(found, std::greater(), &PendingOrigin::count);
  return found;
}

}  // namespace hwt
