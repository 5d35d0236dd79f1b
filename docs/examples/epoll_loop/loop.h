#pragma once

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <system_error>

#include "common/common.h"
#include "hashed_wheel_timer/manual_timer.h"

namespace epoll_loop {

/// The result of a system call. Throws std::system_error with its name if it has failed.
inline int checked(int result, const char* call) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), call);
  return result;
}

/// An epoll loop that drives a timer for all threads: its own tasks run in run(), whoever schedules them.
class Loop {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Loop(std::chrono::nanoseconds tick) : timer_(tick, Clock::now(), common::give_up) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = wakeup_.fd;
    checked(epoll_ctl(epoll_.fd, EPOLL_CTL_ADD, wakeup_.fd, &event), "epoll_ctl");
    timer_.on_earlier([this]() noexcept { wake(); });
  }

  hwt::ManualTimer& timer() noexcept { return timer_; }

  /// Until end() is called, by any thread.
  void run() {
    while (!ended_.load(std::memory_order_relaxed)) {
      const int ready = sleep_until(timer_.next_wakeup());
      ++wakeups_;
      timer_.advance_to(Clock::now());
      for (int i = 0; i < ready; ++i) handle(events_[static_cast<std::size_t>(i)].data.fd);
    }
  }
  void end() noexcept {
    ended_.store(true, std::memory_order_relaxed);
    wake();
  }

  // When it has ended.

  std::int64_t wakeups() const noexcept { return wakeups_; }
  std::int64_t called() const noexcept { return called_; }

 private:
  struct Descriptor {
    ~Descriptor() { close(fd); }
    const int fd;
  };

  void wake() noexcept {
    // It cannot fail: the counter is read as soon as the loop turns.
    [[maybe_unused]] const int result = eventfd_write(wakeup_.fd, 1);
  }

  int sleep_until(std::optional<Clock::time_point> wakeup) {
    int wait = -1;
    if (wakeup) {
      // Up to the next millisecond: rounded down, the loop would turn without a pause until the time has come.
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*wakeup - Clock::now());
      wait = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
    }
    const int ready = epoll_wait(epoll_.fd, events_.data(), static_cast<int>(events_.size()), wait);
    return ready < 0 && errno == EINTR ? 0 : checked(ready, "epoll_wait");
  }

  /// A loop has its sockets here as well.
  void handle(int fd) {
    if (fd != wakeup_.fd) return;
    eventfd_t calls = 0;
    if (eventfd_read(wakeup_.fd, &calls) == 0) called_ += static_cast<std::int64_t>(calls);
  }

  const Descriptor epoll_{checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")};
  const Descriptor wakeup_{checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")};
  std::array<epoll_event, 64> events_{};
  std::atomic<bool> ended_{false};
  std::int64_t wakeups_ = 0;
  std::int64_t called_ = 0;
  hwt::ManualTimer timer_;  // last: it calls wake() until it has gone
};

}  // namespace epoll_loop
