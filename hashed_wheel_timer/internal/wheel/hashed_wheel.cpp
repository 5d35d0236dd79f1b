// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/wheel/hashed_wheel.h"

namespace hwt::internal {

HashedWheel::HashedWheel(std::int64_t buckets)
    : revolutions_(buckets),
      wheel_(static_cast<std::size_t>(buckets)),
      due_(static_cast<std::size_t>(buckets)),
      guessed_(static_cast<std::size_t>(buckets)) {}

bool HashedWheel::insert(WheelItem& item, Tick tick) noexcept {
  assert((reinterpret_cast<std::uintptr_t>(&item) & Chunk::kTagMask) == 0);
  tick = std::clamp(tick, floor_, kNever - 1);
  const std::size_t index = revolutions_.bucket_of(tick);
  Bucket& bucket = wheel_[index];
  if (!bucket.add(item, revolutions_.tag_of(tick), index, chunks_)) return false;
  ++size_;
  if (tick < due_.of(index)) set_due(index, tick, false);
  return true;
}

void HashedWheel::remove(WheelItem& item) noexcept {
  const std::size_t index = Chunk::of(item.position).bucket;
  Bucket& bucket = wheel_[index];
  bucket.remove(item, chunks_);
  --size_;
  if (bucket.items == 0) due_.set(index, kNever);
}

void HashedWheel::move(WheelItem& item, Tick tick) noexcept {
  tick = std::clamp(tick, floor_, kNever - 1);
  const Chunk& chunk = Chunk::of(item.position);
  if (chunk.bucket == revolutions_.bucket_of(tick) && (*item.position & Chunk::kTagMask) == revolutions_.tag_of(tick)) {
    // The entry stays. But the item may have been due a multiple of 64 revolutions later, with the same tag.
    if (tick < due_.of(chunk.bucket)) set_due(chunk.bucket, tick, false);
    return;
  }
  remove(item);
  [[maybe_unused]] const bool inserted = insert(item, tick);
  assert(inserted);
}

}  // namespace hwt::internal
