#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "perf/random.h"
#include "tests/support/job_thread.h"

namespace hwt::oracle {

/// An Options::executor with a thread of its own, which may be late, or one with faults.
class Executor {
 public:
  enum class Kind { None, OnWorker, OwnThread, Dropping, Throwing };

  struct Refused {};

  explicit Executor(Kind kind) : kind_(kind) {
    if (kind == Kind::OwnThread || kind == Kind::Dropping) thread_.emplace(32);  // late, because jobs wait for others
  }

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
      thread_->post(std::move(job));
    };
  }

  /// All its jobs are done. The timer must have stopped.
  void finish() { thread_.reset(); }
  std::int64_t dropped() const { return dropped_; }

 private:
  const Kind kind_;
  perf::Random random_{1};  // the worker's
  std::atomic<std::int64_t> dropped_{0};
  std::optional<test::JobThread> thread_;
};

/// What some tasks throw.
struct Thrown {};

}  // namespace hwt::oracle
