#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace stand_in {

class Channel;

/// Stands in for the event loops of muduo and trantor, so that the TimerQueues of docs/hosts.md can be tested without
/// these libraries. It has the members that a TimerQueue uses.
class Loop {
 public:
  Loop() = default;
  ~Loop() { close(wakeup_); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void queueInLoop(std::function<void()> callback) {
    {
      const std::lock_guard lock(mutex_);
      queued_.push_back(std::move(callback));
    }
    eventfd_write(wakeup_, 1);
  }

  /// Turns until the condition holds. Returns false after 20 s.
  bool run_until(const std::function<bool()>& condition);

 private:
  friend class Channel;

  const int wakeup_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::set<Channel*> channels_;
  std::mutex mutex_;
  std::vector<std::function<void()>> queued_;
};

class Channel {
 public:
  Channel(Loop* loop, int fd) : loop_(*loop), fd_(fd) {}

  void enableReading() { loop_.channels_.insert(this); }
  void disableAll() { loop_.channels_.erase(this); }
  void remove() {}

 protected:
  void set_callback(std::function<void()> callback) { callback_ = std::move(callback); }

 private:
  friend class Loop;

  Loop& loop_;
  const int fd_;
  std::function<void()> callback_;
};

inline bool Loop::run_until(const std::function<bool()>& condition) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition() && std::chrono::steady_clock::now() < give_up) {
    std::vector<pollfd> fds{{wakeup_, POLLIN, 0}};
    std::vector<Channel*> channels;
    for (Channel* channel : channels_) {
      channels.push_back(channel);
      fds.push_back({channel->fd_, POLLIN, 0});
    }
    poll(fds.data(), fds.size(), 1000);
    for (std::size_t i = 0; i < channels.size(); ++i) {
      if (!channels_.contains(channels[i])) continue;  // a callback has removed it
      if ((fds[i + 1].revents & POLLIN) != 0) channels[i]->callback_();
    }
    eventfd_t ignored = 0;
    eventfd_read(wakeup_, &ignored);
    std::vector<std::function<void()>> queued;
    {
      const std::lock_guard lock(mutex_);
      queued.swap(queued_);
    }
    for (const auto& callback : queued) callback();
  }
  return condition();
}

}  // namespace stand_in
