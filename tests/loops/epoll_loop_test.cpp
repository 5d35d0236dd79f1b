// Runs the loop of docs/guide.md, "Event loops", that drives a timer by epoll. That loop calls handle() for each event
// that is not a wake-up.

#include <sys/epoll.h>

#include "tests/loops/driven.h"

using namespace std::chrono_literals;

namespace {

int g_handled = 0;  // used by the loop
void handle(const epoll_event&) { ++g_handled; }

}  // namespace

#include "epoll_block.h"

namespace {

TEST(EpollLoop, RunsTimeoutsOfAnyThreadAndEndsWhenAnyThreadSaysSo) {
  for (int round = 0; round < hwt::test::kDrivenRounds; ++round) {
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    ASSERT_GE(epoll, 0);
    g_handled = 0;
    hwt::LoopTimer timer{1ms};
    std::atomic<bool> ended{false};
    hwt::test::expect_driven_and_ended(round, timer, [&] { run(epoll, timer, ended); }, [&] { end(timer, ended); });
    EXPECT_EQ(g_handled, 0) << "a wake-up was passed to handle()";
    close(epoll);
  }
}

TEST(EpollLoop, HandlesTheEventsOfOtherDescriptorsAndEndsWhenATaskSaysSo) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  const int other = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
  ASSERT_GE(epoll, 0);
  ASSERT_GE(other, 0);
  epoll_event readable{};
  readable.events = EPOLLIN | EPOLLET;
  readable.data.fd = other;
  ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, other, &readable), 0);
  hwt::LoopTimer timer{1ms};
  std::atomic<bool> ended{false};
  const hwt::Timeout far = timer.new_timeout(hwt::test::must_not_run, hwt::test::kFar);
  timer.new_timeout([&] { ended = true; }, 5ms);
  g_handled = 0;
  run(epoll, timer, ended);
  EXPECT_EQ(g_handled, 1);
  close(other);
  close(epoll);
}

}  // namespace
