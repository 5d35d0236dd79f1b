#pragma once

// Takes the place of the library's header. The checker models the fences, and heavy() by the contract of the system
// call.

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
  [[gnu::always_inline]] static void full(const char* file = __builtin_FILE(),
                                          unsigned line = __builtin_LINE()) noexcept {
    model::full_fence(file, line);
  }
  static void prepare() noexcept {}
};

}  // namespace hwt::internal
