#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace perf {

/// Threads that do one job after another together. They stay the same, so that what a timer keeps for each thread is
/// made once.
class Crew {
 public:
  explicit Crew(int threads);
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew();

  /// Calls job(t) on each thread t, and returns when all are done. What they wrote can then be read.
  void run(const std::function<void(int)>& job);

 private:
  void work(int t);
  void do_job(int t) noexcept;

  std::mutex mutex_;  // guards all below but the threads
  std::condition_variable changed_;
  const std::function<void(int)>* job_ = nullptr;
  std::int64_t jobs_ = 0;
  int busy_ = 0;
  bool ending_ = false;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace perf
