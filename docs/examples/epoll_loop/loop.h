#pragma once

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <system_error>

#include "common/common.h"
#include "hashed_wheel_timer/loop_timer.h"

namespace epoll_loop {

/// Returns the result of a system call. Throws std::system_error with its name if it failed.
inline int checked(int result, const char* call) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), call);
  return result;
}

/// An epoll loop that drives a timer. The tasks run in run(), and any thread may schedule.
class Loop {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Loop(std::chrono::nanoseconds tick) : timer_({.tick_duration = tick, .on_task_error = common::give_up}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = wakeup_.fd;
    checked(epoll_ctl(epoll_.fd, EPOLL_CTL_ADD, wakeup_.fd, &event), "epoll_ctl");
    timer_.on_earlier([this]() noexcept { wake(); });
  }

  hwt::LoopTimer& timer() noexcept { return timer_; }

  /// Runs until any thread calls end().
  void run() {
    while (!ended_.load(std::memory_order_relaxed)) {
      const int ready = wait(hwt::poll_timeout(timer_.run_due()));
      for (int i = 0; i < ready; ++i) handle(events_[static_cast<std::size_t>(i)].data.fd);
    }
  }
  void end() noexcept {
    ended_.store(true, std::memory_order_relaxed);
    wake();
  }

  /// Returns how often other threads woke the loop. Call it after run() has returned.
  std::int64_t called() const noexcept { return called_; }

 private:
  struct Descriptor {
    ~Descriptor() { close(fd); }
    const int fd;
  };

  void wake() noexcept {
    // It cannot fail, because the loop reads the counter in each turn.
    [[maybe_unused]] const int result = eventfd_write(wakeup_.fd, 1);
  }

  int wait(int milliseconds) {
    const int ready = epoll_wait(epoll_.fd, events_.data(), static_cast<int>(events_.size()), milliseconds);
    return ready < 0 && errno == EINTR ? 0 : checked(ready, "epoll_wait");
  }

  /// A real loop handles its sockets here too.
  void handle(int fd) {
    if (fd != wakeup_.fd) return;
    eventfd_t calls = 0;
    if (eventfd_read(wakeup_.fd, &calls) == 0) called_ += static_cast<std::int64_t>(calls);
  }

  const Descriptor epoll_{checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")};
  const Descriptor wakeup_{checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")};
  std::array<epoll_event, 64> events_{};
  std::atomic<bool> ended_{false};
  std::int64_t called_ = 0;
  hwt::LoopTimer timer_;  // last: other threads call wake() until it is destroyed
};

}  // namespace epoll_loop
