#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/internal/memory/node_pool.h"
#include "hashed_wheel_timer/internal/memory/slab.h"

namespace hwt::internal {

/// Gives memory of nodes back to the system that no timeout has needed for some time. The worker's alone, in small
/// steps, while nothing is due.
///
/// It takes free nodes out of the depot and the pools, and puts each to its page. A page whose nodes have all come home
/// goes back to the system; its addresses stay, as a free run in the depot, from which a pool carves nodes anew. The
/// first page of a slab goes with the last of the others. All other nodes return to where they were.
///
/// Why nothing can find the page gone, or take a node of its new life for one of an older. While a node is free, only
/// entries and recheck requests in the inbox name it, which are passed over by its word. Each was put there, and its
/// place listed, before the node became free: by a thread that had a reference to it then. The Collector took the node
/// with acquire, so a pass (Driver::transfer) that begins after that opens all these places, and when it is Done has
/// taken every such entry out, or found that the place's owner has sifted it away; the owner did so under
/// Place::locked_, which the worker has had since. So after one such pass no entry names the node, nobody has one in
/// its hand, and there will be none before the node is carved and published again. A step is only ever made right after
/// such a pass, and gives back what former steps have taken.
class Collector {
 public:
  explicit Collector(Depot& depot) noexcept;
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  /// Does some of what is to be done. To be called right after a pass that was Done, and after none that was not.
  /// `now`: of the timer's clock. False: that is all for the time being; see next_step().
  bool step(std::int64_t now) noexcept;

  /// When a step is to be made although nothing else is; kForever: never, unless the worker is woken. For a worker that
  /// has announced its sleep and passed the heavy fence.
  std::int64_t next_step(std::int64_t now) noexcept;

  /// For tests: how long memory must have been of no use, for all timers. It takes effect when a Collector begins to
  /// watch.
  static std::atomic<std::int64_t> unused_for;

 private:
  /// What is less is not worth it: 1 MiB.
  static constexpr std::size_t kWorthwhile = 16384;
  /// Nor is it worth calling the worker for less than so many more than the last time.
  static constexpr std::size_t kGrown = 1024;
  /// With so many kept, it waits twice as long before it looks at them again, and so on.
  static constexpr std::int64_t kSlowly = std::int64_t{1} << 21;
  // Bounds of one step: about a millisecond, if the nodes are in no cache.
  static constexpr std::int64_t kNodesAtOnce = 2048;
  static constexpr int kRunsAtOnce = 1024;
  static constexpr int kPoolsAtOnce = 256;
  static constexpr int kSlabsAtOnce = 8;

  enum class Stage : std::uint8_t {
    Unaware,     // few nodes are free
    Watching,    // until look_at_
    Collecting,  // the free runs, the pools, then the depot
    GivingBack,
  };

  bool is_worthwhile(std::size_t nodes) const noexcept { return nodes >= kWorthwhile && (again_ || nodes > kept_); }
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
  const std::size_t page_bytes_;  // zero: nothing is ever given back
  Stage stage_ = Stage::Unaware;
  std::int64_t look_at_ = 0;
  // Left in the depot by the last time, since their pages are in use, or they are; while it is at it, those that it has
  // not taken, or put back.
  std::size_t kept_ = 0;
  std::size_t kept_before_ = 0;   // by the time before that
  bool again_ = false;            // the last time came to something, so there may be more: what was still on its way
  bool has_given_back_ = false;   // this time
  Page* runs_ = nullptr;          // these free runs are to be collected
  NodePool* pool_ = nullptr;      // and the pools from here on
  std::int64_t to_collect_ = 0;   // and so many from the depot
  Slab* slabs_ = nullptr;         // those of which something has been collected
  ReturnBatch returns_{&depot_};  // not to their pools: those who need them find them there as well
};

}  // namespace hwt::internal
