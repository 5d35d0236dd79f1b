#pragma once

// The report of the process under load to its supervisor, in shared memory.

#include <atomic>
#include <cstdint>

namespace hwt::soak {

using Count = std::atomic<std::int64_t>;

/// relaxed or not, nothing is handed over by these.
struct Totals {
  // Operations.
  Count scheduled{0};
  Count cancelled{0};
  Count expired{0};
  Count others{0};  // other calls

  // What else has happened.
  Count rounds{0};
  Count refused{0};
  Count unprocessed{0};
  Count dropped{0};  // by executors
  Count task_errors{0};
  Count failed_allocations{0};
  Count threads{0};
  Count heap_at_rest{0};  // bytes that new has given and that are in use between two rounds
  Count latest_ns{0};     // how late a timeout was at most

  // What must not happen.
  Count early{0};
  Count lost{0};   // or doubled
  Count wrong{0};  // everything else

  std::atomic<bool> over{false};  // set by the supervisor: the round that is under way is the last

  std::int64_t operations() const { return scheduled + cancelled + expired + others; }
};
static_assert(Count::is_always_lock_free);

}  // namespace hwt::soak
