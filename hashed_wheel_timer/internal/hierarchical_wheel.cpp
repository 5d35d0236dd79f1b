#include "hashed_wheel_timer/internal/hierarchical_wheel.h"

#include <cassert>

namespace hwt::internal {

bool HierarchicalWheel::insert(WheelItem& item, Tick tick) noexcept {
  assert((reinterpret_cast<std::uintptr_t>(&item) & Chunk::kTagMask) == 0);
  if (!add(item, levels_.slot_of(clamp(tick), cursor_))) return false;
  ++size_;
  return true;
}

void HierarchicalWheel::remove(WheelItem& item) noexcept {
  const std::size_t slot = Chunk::of(item.position).bucket;
  Bucket& bucket = slots_[slot];
  bucket.remove(item, chunks_);
  --size_;
  if (bucket.items == 0) levels_.vacate(slot);
}

void HierarchicalWheel::move(WheelItem& item, Tick tick) noexcept {
  if (Chunk::of(item.position).bucket == levels_.slot_of(clamp(tick), cursor_)) return;
  remove(item);
  [[maybe_unused]] const bool inserted = insert(item, tick);
  assert(inserted);
}

void HierarchicalWheel::skip_to(Tick tick) noexcept {
  assert(next_due() >= tick);
  tick = std::min(tick, kNever - 1);
  if (tick <= floor_) return;
  // Every occupied slot begins at `tick` or later, so it is the right one for its items as seen from there as well.
  floor_ = tick;
  cursor_ = tick - 1;
  stopped_ = false;
}

void HierarchicalWheel::hand_on(std::size_t from, std::size_t to) noexcept {
  if (from == to) return;  // after the last tick there is none
  slots_[to].append(slots_[from], to);
  levels_.occupy(to);
  levels_.vacate(from);
}

bool HierarchicalWheel::consistent() const noexcept {
  std::int64_t items = 0;
  for (std::size_t slot = 0; slot < levels_.slots(); ++slot) {
    const Bucket& bucket = slots_[slot];
    if (!bucket.consistent(slot) || (bucket.items != 0) != levels_.occupied(slot)) return false;
    if (bucket.items != 0 && !stopped_ && levels_.begin_of(slot, cursor_) < floor_) return false;
    items += bucket.items;
  }
  return items == size_;
}

}  // namespace hwt::internal
