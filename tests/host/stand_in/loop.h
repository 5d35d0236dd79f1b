#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace stand_in {

class Channel;

/// Stands in for the event loops of muduo and trantor, so that the TimerQueues of docs/hosts.md can be tested without
/// these libraries. It has the members that a TimerQueue uses. This class has the behaviour that both share; that of
/// one of them is in its EventLoop.h. A comment on each behaviour names the version in which it was seen.
class Loop {
 public:
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Polls for 10 s at most, then runs the queued functions, until quit(). A quit() before loop() is lost.
  /// Seen in muduo f1fc77e (2.0.3) and trantor 63a4e5e (1.5.28) on 2026-11-28.
  /// Only the stand-in gives up after 20 s.
  void loop();
  void quit() {
    quit_ = true;
    if (!isInLoopThread()) wakeup();
  }

  void queueInLoop(std::function<void()> function) {
    {
      const std::lock_guard lock(mutex_);
      queued_.push_back(std::move(function));
    }
    if (!isInLoopThread() || ways_.wakes_itself(*this)) wakeup();
  }
  bool isInLoopThread() const { return thread_ == std::this_thread::get_id(); }

  /// Returns whether a loop() runs.
  bool looping() const { return looping_; }
  /// Returns whether loop() is running the queued functions.
  bool calling_queued() const { return calling_queued_; }

  /// Makes the loop the owner of its TimerQueue.
  void own(std::shared_ptr<void> timer_queue) { timer_queue_ = std::move(timer_queue); }
  /// Returns how often the loop has slept for 10 s.
  int long_sleeps() const { return long_sleeps_; }

 protected:
  /// What differs between the loops.
  struct Ways {
    bool (*wakes_itself)(const Loop&);  // whether queueInLoop() wakes the loop although the loop's own thread calls it
    bool runs_all_queued;               // also functions that a queued function has queued, before the next poll
    void (*refuse_other_thread)();      // ends the program, because another thread has changed a Channel
  };
  explicit Loop(const Ways& ways) : ways_(ways) {}
  /// Closes the wake-up descriptor before the TimerQueue is destroyed.
  /// Seen in muduo f1fc77e (2.0.3) and trantor 63a4e5e (1.5.28) on 2026-11-28.
  ~Loop() { close(wakeup_); }

  void wakeup() { eventfd_write(wakeup_, 1); }

 private:
  friend class Channel;

  /// Runs the functions that are queued now. Returns whether there were any.
  bool run_queued() {
    std::vector<std::function<void()>> queued;
    {
      const std::lock_guard lock(mutex_);
      queued.swap(queued_);
    }
    for (const auto& function : queued) function();
    return !queued.empty();
  }

  const Ways ways_;
  const std::thread::id thread_ = std::this_thread::get_id();
  const int wakeup_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::set<Channel*> channels_;
  std::atomic<bool> quit_ = false;
  std::atomic<bool> looping_ = false;
  bool calling_queued_ = false;
  int long_sleeps_ = 0;
  // Before the members below, because muduo f1fc77e (2.0.3) was seen to destroy it after its queued functions.
  std::shared_ptr<void> timer_queue_;
  std::mutex mutex_;
  std::vector<std::function<void()>> queued_;
};

class Channel {
 public:
  void enableReading() { channels().insert(this); }
  void disableAll() { channels().erase(this); }
  void remove() { channels().erase(this); }

 protected:
  Channel(Loop* loop, int fd) : loop_(*loop), fd_(fd) {}
  void set_callback(std::function<void()> callback) { callback_ = std::move(callback); }

 private:
  friend class Loop;

  /// Ends the program if another thread calls it.
  std::set<Channel*>& channels() const {
    if (!loop_.isInLoopThread()) loop_.ways_.refuse_other_thread();
    return loop_.channels_;
  }

  Loop& loop_;
  const int fd_;
  std::function<void()> callback_;
};

inline void Loop::loop() {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  looping_ = true;
  quit_ = false;
  while (!quit_) {
    if (std::chrono::steady_clock::now() >= give_up) {
      ADD_FAILURE() << "the loop has not ended after 20 s";
      break;
    }
    std::vector<pollfd> fds{{wakeup_, POLLIN, 0}};
    std::vector<Channel*> channels;
    for (Channel* channel : channels_) {
      channels.push_back(channel);
      fds.push_back({channel->fd_, POLLIN, 0});
    }
    if (poll(fds.data(), fds.size(), 10'000) == 0) ++long_sleeps_;
    for (std::size_t i = 0; i < channels.size(); ++i) {
      if (!channels_.contains(channels[i])) continue;  // a callback has removed it
      if ((fds[i + 1].revents & POLLIN) != 0) channels[i]->callback_();
    }
    eventfd_t ignored = 0;
    eventfd_read(wakeup_, &ignored);
    calling_queued_ = true;
    while (run_queued() && ways_.runs_all_queued) {
    }
    calling_queued_ = false;
  }
  looping_ = false;
}

}  // namespace stand_in
