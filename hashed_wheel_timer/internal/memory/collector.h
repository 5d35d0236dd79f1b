// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/internal/memory/node_pool.h"
#include "hashed_wheel_timer/internal/memory/slab.h"
#include "hashed_wheel_timer/internal/tuning.h"

namespace hwt::internal {

/// Gives node memory back to the system that no timeout has needed for some time. Only the worker uses it, in small
/// steps, while nothing is due.
///
/// It takes free nodes out of the depot and the pools, and sorts them by page. A page with all its nodes goes back to
/// the system; its addresses stay, as a free run in the depot, from which a pool carves nodes anew. The first page of a
/// slab has the header, so it goes back only when all other pages of the slab do, or have gone before. All other nodes
/// go to the depot.
///
///   from        to          when
///   Unaware     Watching    1 MiB of nodes is free, and more than the last collection has kept: is_worthwhile()
///   Watching    Collecting  the wait is over, and is_worthwhile() holds for the nodes that were free all the time
///   Watching    Watching    the wait is over; fewer nodes were free all the time, but enough are free now
///   Watching    Unaware     the wait is over; too few nodes are free
///   Collecting  GivingBack  the Collector has taken the free runs, the returned and the unused nodes; or a shortage
///   GivingBack  Watching    each page went back or its nodes to the depot; another collection may find more (`again_`)
///   GivingBack  Unaware     each page went back or its nodes to the depot; another collection would find nothing more
///
/// Entries and recheck requests in the inbox, and stale ids, may still name a node whose page is gone. They are
/// harmless by this invariant: the word of a free node has a generation that no entry and no id names, no reference,
/// and no kRecheckQueued. So a thread that comes by a stale name finds no match, and changes nothing. A page that is
/// gone reads as before, or as 0. No life has the generation 0 (NodeWord::kFirstGeneration). A pool that carves the
/// node again gives it a generation that no node of the page has had. Nobody reads the header of a slab by a stale
/// name.
class Collector {
 public:
  /// How long memory must stay unused, in nanoseconds. Long enough that memory for bursts of requests stays. Short
  /// enough that memory of a peak is given back within a minute. That takes two or three collections, because some
  /// nodes reach the depot only after the first.
  static constexpr std::int64_t kUnusedFor = 12'000'000'000;

  explicit Collector(Depot& depot, std::int64_t unused_for = kUnusedFor) noexcept;
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  /// Performs one bounded step. `now`: by the timer's clock. Returns false if nothing is left to do for now; see
  /// next_step().
  bool step(std::int64_t now) noexcept;

  /// Returns the time of the next step, or kForever if none is needed before the worker is woken. The answer kForever
  /// is final only after the caller has announced its sleep.
  std::int64_t next_step(std::int64_t now) noexcept;

 private:
  enum class Stage : std::uint8_t {
    Unaware,     // few nodes are free
    Watching,    // until look_at_
    Collecting,  // the free runs, the pools, then the depot
    GivingBack,
  };

  /// Whether so many free nodes are worth a collection. The last one could not give back the kept nodes, because their
  /// pages are in use. So the number must be higher, unless `again_` is set.
  bool is_worthwhile(std::size_t nodes) const noexcept {
    return nodes >= Tuning::kWorthwhile && (again_ || nodes > kept_);
  }
  void rest() noexcept;
  void watch(std::int64_t now) noexcept;
  void measure(std::int64_t now) noexcept;
  void collect() noexcept;
  void collect(Slab& slab) noexcept;
  void take_home(Page& run) noexcept;
  void take_home(Node* batches) noexcept;
  void give_back_some(std::int64_t now) noexcept;
  void give_back(Slab& slab) noexcept;
  void give_back(Slab& slab, std::size_t first, std::size_t pages) noexcept;
  void return_nodes(Page& page) noexcept;
  std::size_t nodes_of(const Page& page) const noexcept;
  bool is_complete(const Page& page) const noexcept { return page.nodes == nodes_of(page); }

  Depot& depot_;
  const std::int64_t unused_for_;
  const std::size_t page_bytes_;  // zero: nothing is ever given back
  Stage stage_ = Stage::Unaware;
  std::int64_t look_at_ = 0;
  // The number of nodes that the last collection left in the depot, because their pages are in use or a producer needed
  // them. During a collection, the nodes that it has not taken or has put back.
  std::size_t kept_ = 0;
  std::size_t kept_before_ = 0;  // the number of the collection before
  // Collect again, although no more nodes are free than before. The last collection gave something back or kept more
  // than the one before, so nodes that complete its pages may be freed soon. Or a shortage ended it, and it put its
  // nodes back.
  bool again_ = false;
  bool has_given_back_ = false;   // in this collection
  Page* runs_ = nullptr;          // the free runs to collect
  NodePool* pool_ = nullptr;      // the pools to collect from, from this one on
  std::int64_t to_collect_ = 0;   // the number of nodes to take from the depot
  Slab* slabs_ = nullptr;         // slabs with collected nodes
  ReturnBatch returns_{&depot_};  // to the depot, where every pool finds them
};

}  // namespace hwt::internal
