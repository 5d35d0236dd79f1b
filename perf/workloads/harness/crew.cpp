#include "harness/crew.h"

#include <utility>

namespace perf {

Crew::Crew(int threads) {
  for (int t = 0; t < threads; ++t) threads_.emplace_back(&Crew::work, this, t);
}

Crew::~Crew() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Crew::run(const std::function<void(int)>& job) {
  std::unique_lock lock(mutex_);
  job_ = &job;
  busy_ = static_cast<int>(threads_.size());
  ++jobs_;
  changed_.notify_all();
  changed_.wait(lock, [this] { return busy_ == 0; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Crew::work(int t) {
  std::unique_lock lock(mutex_);
  for (std::int64_t done = 0;; ++done) {
    changed_.wait(lock, [&] { return ending_ || jobs_ > done; });
    if (ending_) return;
    lock.unlock();
    do_job(t);
    lock.lock();
    if (--busy_ == 0) changed_.notify_all();
  }
}

void Crew::do_job(int t) noexcept {
  try {
    (*job_)(t);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
}

}  // namespace perf
