// The block of the guide that drives a PassiveWheel by epoll.

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "hashed_wheel_timer/loop_timer.h"
#include "hashed_wheel_timer/passive_wheel.h"
#include "tests/support/test_support.h"

using namespace std::chrono_literals;

namespace {

int g_handled = 0;  // used by the loop
void handle(const epoll_event& event) {
  ++g_handled;
  eventfd_t value = 0;
  EXPECT_EQ(eventfd_read(event.data.fd, &value), 0);
}

}  // namespace

namespace guide {
#include "passive_wheel_block.h"
}

namespace {

struct Fires : hwt::WheelNode {
  void on_timeout() override { fired.count_down(); }
  hwt::test::Latch fired;
};

TEST(PassiveLoop, RunsTimeoutsHandlesEventsAndEndsWhenAnyThreadSaysSo) {
  for (const bool sleeps_without_end : {true, false}) {
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    ASSERT_GE(epoll, 0);
    const int end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const int other = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    for (const int fd : {end, other}) {
      ASSERT_GE(fd, 0);
      epoll_event readable{};
      readable.events = EPOLLIN;
      readable.data.fd = fd;
      ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &readable), 0);
    }
    hwt::PassiveWheel wheel(1ms, std::chrono::steady_clock::now());
    Fires soon;
    Fires far;
    wheel.schedule(soon, 5ms);
    if (!sleeps_without_end) wheel.schedule(far, hwt::test::kFar);
    g_handled = 0;
    hwt::test::Latch ended;
    std::thread loop([&] {
      guide::serve(epoll, end, wheel);
      ended.count_down();
    });
    EXPECT_TRUE(soon.fired.wait());
    EXPECT_EQ(eventfd_write(end, 1), 0);
    if (!ended.wait()) {
      ADD_FAILURE() << "the loop sleeps on, although it was told to end";
      std::abort();  // because nothing ends its thread
    }
    loop.join();
    EXPECT_EQ(g_handled, 1);
    EXPECT_FALSE(far.fired.is_open());
    for (const int fd : {epoll, end, other}) close(fd);
  }
}

}  // namespace
