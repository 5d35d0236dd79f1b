#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "perf/random.h"

namespace hwt::soak {

/// An Options::executor with a thread of its own, which may be late, or one with faults.
class Executor {
 public:
  enum class Kind { None, OnWorker, OwnThread, Dropping, Throwing };

  struct Refused {};

  explicit Executor(Kind kind) : kind_(kind) {
    if (kind == Kind::OwnThread || kind == Kind::Dropping) thread_.emplace([this] { work(); });
  }
  ~Executor() { finish(); }
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  std::function<void(std::function<void()>)> function() {
    if (kind_ == Kind::None) return {};
    return [this](std::function<void()> job) {
      const std::uint64_t choice = random_.next() % 8;
      if (kind_ == Kind::Throwing && choice == 0) throw Refused();
      if (kind_ == Kind::Dropping && choice < 2) {
        ++dropped_;
        if (choice == 0) return;  // at once
        job = [dropped_later = std::move(job)] {};
      }
      if (!thread_) return job();
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    };
  }

  /// All its jobs are done. The timer must have stopped.
  void finish() {
    over_ = true;
    if (thread_ && thread_->joinable()) thread_->join();
  }
  std::int64_t dropped() const { return dropped_; }

 private:
  void work() {
    for (;;) {
      const bool last = over_;
      std::vector<std::function<void()>> jobs;  // needs no memory for itself: this thread may have been struck
      {
        const std::lock_guard lock(mutex_);
        jobs.swap(jobs_);
      }
      for (auto& job : jobs) job();
      if (!jobs.empty()) continue;
      if (last) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  const Kind kind_;
  perf::Random random_{1};  // the worker's
  std::atomic<std::int64_t> dropped_{0};
  std::atomic<bool> over_{false};
  std::mutex mutex_;
  std::vector<std::function<void()>> jobs_;
  std::optional<std::thread> thread_;
};

}  // namespace hwt::soak
