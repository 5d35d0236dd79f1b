#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace hwt::test {

/// An `Options::executor` that runs its jobs on one thread: `batch` of them at once, or fewer after 5 ms, so that none
/// waits forever. The destructor runs the rest.
class JobThread {
 public:
  explicit JobThread(std::size_t batch = 1) : batch_(batch) {}
  ~JobThread() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    came_.notify_one();
  }
  JobThread(const JobThread&) = delete;
  JobThread& operator=(const JobThread&) = delete;

  std::function<void(std::function<void()>)> executor() {
    return [this](std::function<void()> job) { post(std::move(job)); };
  }
  void post(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    came_.notify_one();
  }

 private:
  /// Allocates nothing, because a task may refuse memory to this thread.
  void work() {
    for (std::unique_lock lock(mutex_); !over_ || !jobs_.empty();) {
      came_.wait_for(lock, std::chrono::milliseconds(5), [this] { return over_ || jobs_.size() >= batch_; });
      auto jobs = std::exchange(jobs_, {});
      lock.unlock();
      for (const auto& job : jobs) job();
      jobs.clear();  // without the lock, because the destructor of a task may post a job
      lock.lock();
    }
  }

  const std::size_t batch_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<std::function<void()>> jobs_;
  bool over_ = false;
  std::jthread thread_{[this] { work(); }};
};

}  // namespace hwt::test
