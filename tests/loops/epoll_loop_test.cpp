// The block of the guide that drives a timer by epoll.

#include <sys/epoll.h>
#include <unistd.h>

#include "tests/loops/driven.h"

using namespace std::chrono_literals;

namespace {

/// Ends the loop: handle() throws it when the test has written to a pipe.
struct Ended {};
void handle(const epoll_event& event);

}  // namespace

#include "epoll_block.h"

namespace {

int g_end = -1;

void handle(const epoll_event& event) {
  if (event.data.fd == g_end) throw Ended();
}

TEST(EpollLoop, RunsTimeoutsOfAnyThread) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  g_end = ends[0];
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  ASSERT_GE(epoll, 0);
  epoll_event ended{};
  ended.events = EPOLLIN;
  ended.data.fd = g_end;
  ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, g_end, &ended), 0);
  hwt::LoopTimer timer{1ms};
  std::thread loop([&] { EXPECT_THROW(run(epoll, timer), Ended); });
  hwt::test::expect_driven(timer);
  ASSERT_EQ(write(ends[1], "", 1), 1);
  loop.join();
  timer.on_earlier({});
  for (const int fd : {epoll, ends[0], ends[1]}) close(fd);
}

}  // namespace
