#pragma once

// The report of the process under load to its supervisor, in shared memory.

#include <atomic>
#include <cstdint>

namespace hwt::oracle {

using Count = std::atomic<std::int64_t>;

/// relaxed or not, nothing is handed over by these.
struct Totals {
  // Operations.
  Count calls{0};    // each is in the record of its timeout
  Count churned{0};  // other calls
  Count expired{0};
  Count under_way{0};  // calls of the present round

  // What else has happened.
  Count scheduled{0};
  Count cancelled{0};
  Count rounds{0};
  Count refused{0};
  Count unprocessed{0};
  Count dropped{0};  // by executors
  Count task_errors{0};
  Count failed_allocations{0};
  Count threads{0};
  Count heap_at_rest{0};  // bytes that new has given and that are in use between two rounds
  Count latest_ns{0};     // how late a timeout was at most

  std::atomic<bool> over{false};  // set by the supervisor: the round that is under way is the last

  std::int64_t operations() const { return calls + churned + expired + under_way; }
};
static_assert(Count::is_always_lock_free);

}  // namespace hwt::oracle
