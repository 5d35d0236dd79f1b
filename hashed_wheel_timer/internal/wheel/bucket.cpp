// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/wheel/bucket.h"

#include <new>

namespace hwt::internal {

Chunk* ChunkPool::take() noexcept {
  if (free_ != nullptr) {
    Chunk* const chunk = free_;
    free_ = chunk->next;
    return chunk;
  }
  if (carved_ == Tuning::kChunksPerRegion && !grow()) return nullptr;
  return &regions_.back()[carved_++];
}

bool ChunkPool::grow() noexcept {
  try {
    regions_.push_back(std::unique_ptr<Chunk[]>(new Chunk[Tuning::kChunksPerRegion]));
  } catch (const std::bad_alloc&) {
    return false;
  }
  carved_ = 0;
  return true;
}

void ChunkPool::give_back(Chunk* chunk) noexcept {
  chunk->next = free_;
  free_ = chunk;
}

bool Bucket::add_chunk(const WheelItem& item, std::size_t number, ChunkPool& pool) noexcept {
  Chunk* const chunk = pool.take();
  if (chunk == nullptr) return false;
  chunk->next = nullptr;
  chunk->used = 0;
  chunk->top = Chunk::top_of(item);
  chunk->bucket = static_cast<std::uint32_t>(number);
  (last == nullptr ? first : last->next) = chunk;
  last = chunk;
  return true;
}

void Bucket::drop(Chunk* before, Chunk* chunk, ChunkPool& pool) noexcept {
  (before == nullptr ? first : before->next) = chunk->next;
  if (last == chunk) last = before;
  if (sweep == chunk) sweep = chunk->next;
  holes -= chunk->used;
  pool.give_back(chunk);
}

void Bucket::prepend(Bucket& other, std::size_t number) noexcept {
  if (other.first == nullptr) return;
  for (Chunk* chunk = other.first; chunk != nullptr; chunk = chunk->next) {
    chunk->bucket = static_cast<std::uint32_t>(number);
  }
  other.last->next = first;
  first = other.first;
  if (last == nullptr) last = other.last;
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
  sweep = nullptr;
  holes = 0;
}

/// Does one step of a sweep: closes up the chunk `to`, and fills it with entries of the next chunk, `from`. Drops
/// `from` if no entry is left in it.
void Bucket::compact_next(ChunkPool& pool) noexcept {
  Chunk* const to = sweep != nullptr ? sweep : first;
  close_up(*to);
  Chunk* const from = to->next;
  // Ends the sweep at the end of the list, or when few holes are left. If the oldest items were removed first, few are
  // left soon, because all holes were in front.
  sweep = holes > items / 4 ? from : nullptr;
  if (sweep == nullptr) return;
  if (to->used != 0 && to->top != from->top) return;  // a chunk has one top for all entries
  to->top = from->top;
  std::size_t i = 0;
  for (; i < from->used && to->used != Chunk::kEntries; ++i) {
    const std::uint64_t entry = from->entry(i);
    if (entry == Chunk::kHole) continue;
    to->put(to->used++, *from->item_of(entry), entry & Chunk::kTagMask);
    from->assign(i, Chunk::kHole);
    ++holes;
  }
  if (i != from->used) return;
  sweep = to;
  drop(to, from, pool);
}

void Bucket::close_up(Chunk& chunk) noexcept {
  std::uint16_t filled = 0;
  for (std::size_t i = 0; i < chunk.used; ++i) {
    const std::uint64_t entry = chunk.entry(i);
    if (entry == Chunk::kHole) continue;
    if (filled != i) chunk.put(filled, *chunk.item_of(entry), entry & Chunk::kTagMask);
    ++filled;
  }
  holes -= chunk.used - std::uint32_t{filled};
  chunk.used = filled;
}

}  // namespace hwt::internal
