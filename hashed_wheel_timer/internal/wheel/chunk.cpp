// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/wheel/chunk.h"

#include <new>

#include "hashed_wheel_timer/internal/tuning.h"

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

}  // namespace hwt::internal
