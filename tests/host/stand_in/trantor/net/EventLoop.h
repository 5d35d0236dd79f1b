#pragma once

// Stands in for trantor: the names that a TimerQueue uses, with their signatures, in the headers in which trantor has
// them. The behaviour was seen in trantor 63a4e5e (1.5.28) on 2026-11-28.

#include <cstdint>
#include <cstdlib>

#include "tests/host/stand_in/loop.h"

namespace trantor {

using TimerId = std::uint64_t;

class EventLoop : public stand_in::Loop {
 public:
  /// In its own thread, trantor's loop wakes itself before loop() and after it. If another thread changes a Channel,
  /// trantor ends the program with status 1. The destructor of a loop may run on another thread.
  EventLoop()
      : Loop({.wakes_itself = [](const Loop& loop) { return !loop.looping(); },
              .runs_all_queued = true,
              .refuse_other_thread = [] { std::exit(1); }}) {}
};

}  // namespace trantor
