#pragma once

#include <pthread.h>

#include <cstdint>
#include <functional>
#include <latch>
#include <semaphore>
#include <system_error>
#include <utility>
#include <vector>

namespace hwt::perf {

/// Thousands of threads with small stacks. Each starts when the one before has done its job. All stay alive until they
/// are released.
class Crowd {
 public:
  explicit Crowd(std::function<void()> job) : job_(std::move(job)) {
    pthread_attr_init(&small_);
    pthread_attr_setstacksize(&small_, 64 * 1024);
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  ~Crowd() {
    let_go();
    pthread_attr_destroy(&small_);
  }

  void add_thread() {
    pthread_t thread{};
    const int error = pthread_create(&thread, &small_, &Crowd::body, this);
    if (error != 0) throw std::system_error(error, std::generic_category(), "pthread_create");
    threads_.push_back(thread);
    job_done_.acquire();
  }

  void let_go() {
    if (!end_.try_wait()) end_.count_down();
    for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
    threads_.clear();
  }

 private:
  static void* body(void* crowd) {
    Crowd& self = *static_cast<Crowd*>(crowd);
    self.job_();
    self.job_done_.release();
    self.end_.wait();
    return nullptr;
  }

  std::function<void()> job_;
  pthread_attr_t small_{};
  std::binary_semaphore job_done_{0};
  std::latch end_{1};
  std::vector<pthread_t> threads_;
};

}  // namespace hwt::perf
