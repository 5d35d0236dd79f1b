#pragma once

// Handles and ids of timers that have ended. They stay stale for ever.

#include "tests/oracle/lane.h"

namespace hwt::oracle {

class Relics {
 public:
  void keep(std::deque<Records>& all) {
    for (Records& records : all) {
      for (std::size_t i = 0; i < records.used(); i += 997) {
        if (records[i].copies == 0) handles_.push_back(records[i].handle);
        ids_.push_back(TimeoutId::from_value(records[i].id));
        if (ids_.size() > kMostIds) ids_.pop_front();
      }
    }
  }
  void check_ids(Ledger& ledger, Timer& timer) {
    for (const TimeoutId id : ids_) {
      ledger.expect(timer.cancel(id) == CancelResult::Gone && !timer.find(id) && !timer.reschedule(id, 1ms),
                    "an id is Gone for every other timer");
    }
  }
  /// When their timer is gone. Drops them, because they keep its memory.
  void check_handles(Ledger& ledger) {
    for (Timeout& handle : handles_) {
      ledger.expect(!handle.cancel() && !handle.reschedule(1ms) && !handle.is_pending() && handle.timer() == nullptr,
                    "a handle outlives its timer, and stays stale");
    }
    handles_ = {};
  }

 private:
  static constexpr std::size_t kMostIds = 500;
  std::vector<Timeout> handles_;
  std::deque<TimeoutId> ids_;
};

/// Of all rounds.
inline Relics& relics() {
  static Relics relics;
  return relics;
}

}  // namespace hwt::oracle
