#pragma once

// In place of the library's: the system call of the heavy side is a model of its contract.

#include "tests/models/checker.h"

namespace hwt::internal {

class AsymmetricFence {
 public:
  [[gnu::always_inline]] static void light(const char* file = __builtin_FILE(),
                                           unsigned line = __builtin_LINE()) noexcept {
    model::light_fence(file, line);
  }
  [[gnu::always_inline]] static void heavy(const char* file = __builtin_FILE(),
                                           unsigned line = __builtin_LINE()) noexcept {
    model::heavy_fence(file, line);
  }
  static void prepare() noexcept {}
};

}  // namespace hwt::internal
