// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/memory/collector.h"

#include <algorithm>
#include <span>
#include <utility>

#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/platform/pages.h"
#include "hashed_wheel_timer/internal/platform/sanitizers.h"
#include "hashed_wheel_timer/internal/time/clock.h"
#include "hashed_wheel_timer/internal/tuning.h"
#include "hashed_wheel_timer/internal/wheel/prefetch.h"

namespace hwt::internal {

Collector::Collector(Depot& depot, std::int64_t unused_for) noexcept
    : depot_(depot), unused_for_(unused_for), page_bytes_(Slab::page_bytes()) {
  if (page_bytes_ != 0) rest();
}

void Collector::rest() noexcept {
  stage_ = Stage::Unaware;
  again_ = false;
  depot_.wake_worker_at(std::max(Tuning::kWorthwhile, kept_ + Tuning::kGrown));
}

void Collector::watch(std::int64_t now) noexcept {
  stage_ = Stage::Watching;
  depot_.wake_worker_at(Depot::kNoWakeUp);
  const std::int64_t wait = unused_for_ + unused_for_ / Tuning::kSlowly * static_cast<std::int64_t>(kept_);
  look_at_ = deadline_after(now, wait);
  depot_.begin_watch(depot_.free_nodes());
}

std::int64_t Collector::next_step(std::int64_t now) noexcept {
  if (page_bytes_ == 0) return kForever;
  if (stage_ == Stage::Unaware) {
    // kept_ counts the free nodes that the last collection left. If fewer were free meanwhile, timeouts have used some
    // of them, and other pages may be complete now. So kept_ falls, by Tuning::kGrown or more at once, and
    // wake_worker_at_ too. That needs a fence of its own, because the worker may have announced its sleep already.
    const std::size_t fewest = depot_.fewest_free_nodes();
    if (fewest + Tuning::kGrown <= kept_) {
      kept_ = fewest;
      rest();
      AsymmetricFence::full();
    }
    if (!is_worthwhile(depot_.free_nodes())) return kForever;
    watch(now);
  }
  return stage_ == Stage::Watching ? look_at_ : now;
}

bool Collector::step(std::int64_t now) noexcept {
  switch (stage_) {
    case Stage::Unaware:
      return false;
    case Stage::Watching:
      if (now >= look_at_) measure(now);
      break;
    case Stage::Collecting:
      collect();
      break;
    case Stage::GivingBack:
      give_back_some(now);
      break;
  }
  return stage_ == Stage::Collecting || stage_ == Stage::GivingBack;
}

/// Ends a wait in Watching. `unused`: the nodes that were free during the whole wait.
void Collector::measure(std::int64_t now) noexcept {
  const std::size_t free = depot_.free_nodes();
  const std::size_t unused = std::min(free, depot_.fewest_free_nodes());
  if (is_worthwhile(unused)) {
    stage_ = Stage::Collecting;
    depot_.begin_collection();
    kept_before_ = std::exchange(kept_, free);
    has_given_back_ = false;
    runs_ = depot_.take_runs();
    pool_ = depot_.pools();
    to_collect_ = static_cast<std::int64_t>(unused);
  } else if (kept_ = std::min(kept_, unused); is_worthwhile(free)) {
    watch(now);
  } else {
    rest();
  }
}

/// One step of Collecting. Returns early when its bound is reached; the next step goes on there. A shortage ends the
/// collection, because a producer needs the nodes.
void Collector::collect() noexcept {
  for (int runs = 0; runs_ != nullptr; take_home(*std::exchange(runs_, runs_->next))) {
    if (++runs > Tuning::kRunsAtOnce) return;
  }
  const std::int64_t enough = depot_.collected + Tuning::kNodesAtOnce;
  for (int pools = 0; pool_ != nullptr; pool_ = pool_->next) {
    if (depot_.collected >= enough || ++pools > Tuning::kPoolsAtOnce) return;
    take_home(pool_->take_returned());
  }
  while (to_collect_ > 0 && !depot_.has_shortage()) {
    if (depot_.collected >= enough) return;
    std::int64_t taken = 0;
    take_home(depot_.collect(std::min(to_collect_, Tuning::kNodesAtOnce), taken));
    if (taken == 0) break;
    to_collect_ -= taken;
    kept_ -= std::min(kept_, static_cast<std::size_t>(taken));
  }
  stage_ = Stage::GivingBack;
}

void Collector::collect(Slab& slab) noexcept {
  if (!std::exchange(slab.collected, true)) slab.next = std::exchange(slabs_, &slab);
}

/// Makes the pages of a free run complete, so that they may go back together with their neighbours. They hold no nodes.
/// Depot::collected has counted these since their memory went back, or no pool has ever carved them. So it stays, and
/// such a page is the only one that has a number of nodes without a list of them.
void Collector::take_home(Page& run) noexcept {
  Slab& slab = Slab::of(run);
  for (std::size_t i = run.index; i < run.run_end; ++i) {
    slab.pages[i].nodes = static_cast<std::uint16_t>(nodes_of(slab.pages[i]));
  }
  collect(slab);
}

/// Puts each node into the list of its page.
void Collector::take_home(Node* batches) noexcept {
  while (batches != nullptr) {
    Node* node = std::exchange(batches, FreeNode::of(batches).next_batch);
    while (node != nullptr) {
      if (Node* const ahead = FreeNode::of(node).ahead) prefetch_to_write(ahead);
      Slab& slab = *Slab::header(*node).slab;
      const auto offset = static_cast<std::size_t>(reinterpret_cast<std::byte*>(node) - slab.memory);
      Page& page = slab.pages[offset / page_bytes_];
      Node* const next = node->next().exchange(page.home);
      page.home = node;
      ++page.nodes;
      ++depot_.collected;
      collect(slab);
      node = next;
    }
  }
}

/// Returns the number of nodes of a whole page. The first page of a slab has the header in place of one node.
std::size_t Collector::nodes_of(const Page& page) const noexcept {
  return page_bytes_ / sizeof(Node) - (page.index == 0 ? 1 : 0);
}

void Collector::give_back_some(std::int64_t now) noexcept {
  for (int slabs = 0; slabs_ != nullptr && slabs != Tuning::kSlabsAtOnce; ++slabs) {
    Slab& slab = *std::exchange(slabs_, slabs_->next);
    slab.collected = false;
    give_back(slab);
  }
  returns_.flush();
  if (slabs_ != nullptr) return;
  if (depot_.has_shortage()) {
    again_ = true;  // the nodes are back because of the shortage, not because their pages are in use
    return watch(now);
  }
  // Without the nodes that have come meanwhile.
  kept_ = std::min(kept_, depot_.free_nodes());
  depot_.begin_watch(kept_);
  again_ = kept_ >= Tuning::kWorthwhile && (has_given_back_ || kept_ > kept_before_);
  if (again_) return watch(now);
  rest();
}

void Collector::give_back(Slab& slab) noexcept {
  const std::span pages(slab.pages.data(), Slab::kBytes / page_bytes_);
  const auto complete = [this](const Page& page) { return is_complete(page); };
  // A producer needs memory. The collected nodes cost less than fresh ones.
  if (depot_.has_shortage()) std::for_each(pages.begin(), pages.end(), [this](Page& page) { return_nodes(page); });
  if (std::all_of(pages.begin(), pages.end(), complete)) return give_back(slab, 0, pages.size());
  // The first page has the header, which every other node of the slab needs.
  return_nodes(pages.front());
  for (auto first = pages.begin() + 1; first != pages.end();) {
    const auto end = std::find_if_not(first, pages.end(), complete);
    if (end != first) {
      give_back(slab, static_cast<std::size_t>(first - pages.begin()), static_cast<std::size_t>(end - first));
      first = end;
    } else {
      return_nodes(*first++);
    }
  }
}

void Collector::give_back(Slab& slab, std::size_t first, std::size_t pages) noexcept {
  bool there = false;  // a page has nodes; otherwise the memory of all pages went back before
  // Becomes a generation that no node of the pages has had. A free node has the generation of its next life already.
  std::uint32_t unused = 0;
  for (std::size_t i = first; i < first + pages; ++i) {
    Page& page = slab.pages[i];
    unused = std::max(unused, page.first_generation);
    for (Node* node = std::exchange(page.home, nullptr); node != nullptr; node = node->next()) {
      unused = std::max(unused, node->generation());
      there = true;
    }
    page.nodes = 0;
  }
  if (there) {
    has_given_back_ = true;
    std::byte* const begin = slab.memory + first * page_bytes_;
    unpoison_memory(begin, pages * page_bytes_);
    pages::give_back(begin, pages * page_bytes_);
  }
  for (std::size_t i = first; i < first + pages; ++i) slab.pages[i].first_generation = unused;
  Page& run = slab.pages[first];
  run.run_end = static_cast<std::uint8_t>(first + pages);
  depot_.push_run(run);
}

void Collector::return_nodes(Page& page) noexcept {
  if (page.home == nullptr) return;
  depot_.collected -= page.nodes;
  kept_ += page.nodes;
  page.nodes = 0;
  for (Node* node = std::exchange(page.home, nullptr); node != nullptr;) {
    Node* const next = node->next();
    returns_.add_free(node);
    node = next;
  }
}

}  // namespace hwt::internal
