#include "hashed_wheel_timer/internal/bucket.h"

#include <cassert>

namespace hwt::internal {

bool Bucket::add_chunk(const WheelItem& item, std::size_t number, ChunkPool& pool) noexcept {
  Chunk* const chunk = pool.take();
  if (chunk == nullptr) return false;
  chunk->next = nullptr;
  chunk->used = 0;
  chunk->region = Chunk::region_of(item);
  chunk->bucket = static_cast<std::uint32_t>(number);
  (last == nullptr ? first : last->next) = chunk;
  last = chunk;
  return true;
}

void Bucket::drop(Chunk* before, Chunk* chunk, ChunkPool& pool) noexcept {
  (before == nullptr ? first : before->next) = chunk->next;
  if (last == chunk) last = before;
  holes -= chunk->used;
  pool.give_back(chunk);
}

void Bucket::append(Bucket& other, std::size_t number) noexcept {
  for (Chunk* chunk = other.first; chunk != nullptr; chunk = chunk->next) {
    chunk->bucket = static_cast<std::uint32_t>(number);
  }
  (last == nullptr ? first : last->next) = other.first;
  if (other.last != nullptr) last = other.last;
  items += other.items;
  holes += other.holes;
  other = {};
}

void Bucket::release_chunks(ChunkPool& pool) noexcept {
  while (first != nullptr) {
    Chunk* const chunk = first;
    first = chunk->next;
    pool.give_back(chunk);
  }
  last = nullptr;
  holes = 0;
}

void Bucket::compact(ChunkPool& pool) noexcept {
  Chunk* to = first;
  assert(to != nullptr);
  std::uint16_t filled = 0;
  for (Chunk* from = first; from != nullptr; from = from->next) {
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
    pool.give_back(rest);
  }
  last = to;
  holes = 0;
}

bool Bucket::consistent(std::size_t number) const noexcept {
  std::uint32_t items_here = 0;
  std::uint32_t holes_here = 0;
  const Chunk* end = nullptr;
  for (Chunk* chunk = first; chunk != nullptr; chunk = chunk->next) {
    if (chunk->bucket != number || chunk->used > Chunk::kEntries) return false;
    for (std::size_t i = 0; i < chunk->used; ++i) {
      if (chunk->entry(i) == 0) {
        ++holes_here;
      } else {
        ++items_here;
        if (chunk->item(i)->position != chunk->position(i)) return false;
      }
    }
    end = chunk;
  }
  return end == last && items_here == items && holes_here == holes && (items != 0 || first == nullptr);
}

}  // namespace hwt::internal
