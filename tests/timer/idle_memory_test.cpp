// When a timer looks for memory that no timeout needs. Memory of each peak goes back to the system in the end
// (promise 7), also if the timer is busy. The worker of an idle timer sleeps (promise 11).

#include <thread>
#include <unordered_set>
#include <utility>

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/memory/slab.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"
#include "tests/timer/after_a_peak.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using internal::Depot;
using internal::Node;

/// The Collector has a third of the nodes, and all free runs, when more are needed than are left. Or just as many.
class AfterAPeakInUse : public AfterAPeak, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(AfterAPeak, AfterAPeakInUse, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "ForMore" : "ForAsMany"; });

TEST_P(AfterAPeakInUse, WhileItIsCollectedItGoesLater) {
  const std::int64_t at_first = bytes_in_use;
  {
    ManualTimer timer(1ms);
    std::vector<Timeout> timeouts = schedule(timer, 100'000);
    Depot& depot = Node::of(timeouts[0])->core().depot();
    cancel(timeouts);
    pass(timer, 60);
    ASSERT_LE(slabs_.resident_pages(), little());

    timeouts = schedule(timer, 40'000);
    cancel(timeouts);
    timer.advance(200ms);  // begins to watch
    timer.advance(13s);    // collects a third
    ASSERT_LE(depot.free_nodes(), 30'000U);
    while (GetParam() ? !depot.has_shortage() : depot.free_nodes() != 0) {
      timeouts.push_back(timer.new_timeout([] {}, kFar));
    }
    timer.advance(1ms);
    cancel(timeouts);
    pass(timer, 60);
    EXPECT_LE(slabs_.resident_pages(), little());
  }
  EXPECT_LE(bytes_in_use - at_first, 64 << 10);
}

}  // namespace
}  // namespace hwt
