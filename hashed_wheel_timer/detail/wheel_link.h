// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hwt::detail {

/// One link of a ring. Each slot of the wheel is a ring that always contains the slot itself, so that removing a node
/// has no special case.
struct WheelLink {
  WheelLink* next_ = nullptr;
  WheelLink* previous_ = nullptr;
};

}  // namespace hwt::detail
