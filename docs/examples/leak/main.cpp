#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/hashed_wheel_timer.h"

using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kLines = 100;  // places of the server that schedule timeouts
constexpr std::uint32_t kLeak = 42;    // the one that does not cancel all of its timeouts

/// Handles requests: each line has up to 10,000 timeouts in flight, and cancels its oldest one for each new one.
/// For one in a hundred of its requests, the leaking line schedules a second timeout and never cancels it.
void serve(hwt::Timer& timer, const std::atomic<bool>& end) {
  std::vector<std::deque<hwt::TimeoutId>> in_flight(kLines);
  for (std::uint64_t request = 0; !end; ++request) {
    const auto line = static_cast<std::uint32_t>(request % kLines + 1);
    const hwt::Origin origin("server.cpp", line);
    std::deque<hwt::TimeoutId>& own = in_flight[line - 1];
    own.push_back(timer.add([] {}, 30s, origin));
    if (line == kLeak && request / kLines % 100 == 0) timer.add([] {}, 30s, origin);
    if (own.size() <= 10'000) continue;
    timer.cancel(own.front());
    own.pop_front();
  }
}

}  // namespace

int main() {
  hwt::HashedWheelTimer timer{{.tick_duration = 10ms, .trace_origins = true}};
  std::atomic<bool> end = false;
  std::thread server(serve, std::ref(timer), std::cref(end));
  std::this_thread::sleep_for(2s);

  // The server runs on meanwhile.
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<hwt::PendingOrigin> origins = timer.pending_by_origin();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;

  const auto seconds = [](std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); };
  std::puts(" pending   oldest   next due  origin");
  const std::size_t shown = std::min<std::size_t>(5, origins.size());
  for (std::size_t i = 0; i != shown; ++i) {
    const hwt::PendingOrigin& found = origins[i];
    std::printf("%8lld %6.1f s %8.1f s  %s\n", static_cast<long long>(found.count), seconds(timer.now() - found.oldest),
                seconds(found.next_deadline - timer.now()), found.origin.describe().c_str());
  }
  std::printf("and %zu others; one call of %.1f ms, with %.2f million pending\n", origins.size() - shown, took.count(),
              static_cast<double>(timer.pending_timeouts()) / 1e6);
  end = true;
  server.join();
}
