#include "hashed_wheel_timer/internal/hashed_wheel.h"

#include <bit>
#include <cassert>

namespace hwt::internal {

HashedWheel::HashedWheel(std::int64_t buckets)
    : mask_(buckets - 1),
      revolution_shift_(std::countr_zero(static_cast<std::uint64_t>(buckets))),
      wheel_(static_cast<std::size_t>(buckets)),
      due_(static_cast<std::size_t>(buckets)) {}

bool HashedWheel::insert(WheelItem& item, Tick tick) noexcept {
  assert((reinterpret_cast<std::uintptr_t>(&item) & Chunk::kTagMask) == 0);
  tick = std::clamp(tick, floor_, kNever - 1);
  const std::size_t index = bucket_of(tick);
  Bucket& bucket = wheel_[index];
  if (bucket.last == nullptr || !bucket.last->takes(item)) {
    Chunk* const chunk = chunks_.take();
    if (chunk == nullptr) return false;
    chunk->next = nullptr;
    chunk->used = 0;
    chunk->region = Chunk::region_of(item);
    chunk->bucket = static_cast<std::uint32_t>(index);
    (bucket.last == nullptr ? bucket.first : bucket.last->next) = chunk;
    bucket.last = chunk;
  }
  bucket.last->put(bucket.last->used++, item, tag_of(tick));
  ++bucket.items;
  ++size_;
  if (tick < due_.of(index)) due_.set(index, tick);
  return true;
}

void HashedWheel::remove(WheelItem& item) noexcept {
  Chunk& chunk = Chunk::of(item.position);
  const std::size_t index = chunk.bucket;
  Bucket& bucket = wheel_[index];
  chunk.assign(chunk.index_of(item.position), 0);
  item.position = nullptr;
  --size_;
  --bucket.items;
  ++bucket.holes;
  drop_hole(bucket, index);
}

void HashedWheel::move(WheelItem& item, Tick tick) noexcept {
  tick = std::clamp(tick, floor_, kNever - 1);
  const Chunk& chunk = Chunk::of(item.position);
  if (chunk.bucket == bucket_of(tick) && (*item.position & Chunk::kTagMask) == tag_of(tick)) {
    // Its entry stays as it is; but it may have been due a multiple of 64 revolutions later.
    if (tick < due_.of(chunk.bucket)) due_.set(chunk.bucket, tick);
    return;
  }
  remove(item);
  [[maybe_unused]] const bool inserted = insert(item, tick);
  assert(inserted);
}

void HashedWheel::drop_hole(Bucket& bucket, std::size_t index) noexcept {
  if (bucket.items == 0) {
    if (bucket.first != nullptr) release_chunks(bucket);
    due_.set(index, kNever);
  } else if (bucket.holes > bucket.items + Chunk::kEntries) {
    // Only when the holes outnumber the items: each compaction is then paid for by as many removals.
    compact(bucket);
  }
}

void HashedWheel::release_chunks(Bucket& bucket) noexcept {
  while (bucket.first != nullptr) {
    Chunk* const chunk = bucket.first;
    bucket.first = chunk->next;
    chunks_.give_back(chunk);
  }
  bucket.last = nullptr;
  bucket.holes = 0;
}

void HashedWheel::compact(Bucket& bucket) noexcept {
  Chunk* to = bucket.first;
  std::uint16_t filled = 0;
  for (Chunk* from = bucket.first; from != nullptr; from = from->next) {
    for (std::size_t i = 0; i < from->used; ++i) {
      const std::uint64_t entry = from->entry(i);
      if (entry == 0) continue;
      // `to` never overtakes `from`, so what is overwritten has been moved before: a chunk is full, or ends at a change
      // of region, only where one ended before.
      if (filled == Chunk::kEntries || (filled != 0 && to->region != from->region)) {
        to->used = filled;
        to = to->next;
        filled = 0;
      }
      if (filled == 0) to->region = from->region;
      if (to != from || filled != i) to->put(filled, *from->item_of(entry), entry & Chunk::kTagMask);
      ++filled;
    }
  }
  to->used = filled;
  while (Chunk* const rest = to->next) {
    to->next = rest->next;
    chunks_.give_back(rest);
  }
  bucket.last = to;
  bucket.holes = 0;
}

bool HashedWheel::consistent() const noexcept {
  std::int64_t items_in_wheel = 0;
  for (Tick i = 0; i <= mask_; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const Bucket& bucket = wheel_[index];
    std::uint32_t items = 0;
    std::uint32_t holes = 0;
    const Chunk* last = nullptr;
    for (Chunk* chunk = bucket.first; chunk != nullptr; chunk = chunk->next) {
      if (chunk->bucket != index || chunk->used > Chunk::kEntries) return false;
      for (std::size_t e = 0; e < chunk->used; ++e) {
        if (chunk->entry(e) == 0) {
          ++holes;
        } else {
          ++items;
          if (chunk->item(e)->position != chunk->position(e)) return false;
        }
      }
      last = chunk;
    }
    if (last != bucket.last || items != bucket.items || holes != bucket.holes) return false;
    const Tick due = due_.of(index);
    if ((items == 0) != (due == kNever)) return false;
    if (items != 0 && (bucket_of(due) != index || due < due_.earliest())) return false;
    items_in_wheel += items;
  }
  return items_in_wheel == size_;
}

}  // namespace hwt::internal
