// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/batch_executor.h"

#include <atomic>

#include "hashed_wheel_timer/detail/intrusive_stack.h"

namespace hwt {

/// The jobs that no batch has taken yet. The thread that adds the first job posts a batch. So while there are jobs, a
/// batch is on its way to the loop. The batch takes all jobs by one exchange, and the next job is a first one again.
class internal::BatchJobs : public std::enable_shared_from_this<BatchJobs> {
 public:
  explicit BatchJobs(std::function<void(std::function<void()>)> post) : post_(std::move(post)) {}
  BatchJobs(const BatchJobs&) = delete;
  BatchJobs& operator=(const BatchJobs&) = delete;
  // Every batch has a reference, and takes its jobs before it goes.
  ~BatchJobs() = default;

  void add(std::function<void()>&& job) {
    if (!waiting_.push(*new Job{std::move(job)})) return;
    // Outside the try block, because the last copy of the batch drops the jobs, and the catch block still runs them.
    std::shared_ptr<Batch> batch;
    try {
      batch = std::make_shared<Batch>(shared_from_this());
      post_([batch] { batch->run(); });
    } catch (...) {
      batch == nullptr ? run_all() : batch->run();
      throw;
    }
  }

 private:
  struct Job {
    std::function<void()> run;
    Job* older = nullptr;
  };

  /// The posted job, shared by all copies. The last copy destroys the jobs if none was called.
  class Batch {
   public:
    explicit Batch(std::shared_ptr<BatchJobs> jobs) noexcept : jobs_(std::move(jobs)) {}
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    ~Batch() {
      if (!called_.load(std::memory_order_relaxed)) jobs_->drop_all();
    }

    void run() noexcept {
      // relaxed: the jobs come by another exchange, and the reference count orders the destructor.
      if (!called_.exchange(true, std::memory_order_relaxed)) jobs_->run_all();
    }

   private:
    const std::shared_ptr<BatchJobs> jobs_;
    std::atomic<bool> called_{false};
  };

  /// Takes all jobs. Returns the oldest, linked to the others.
  Job* take_all() noexcept {
    Job* newest = waiting_.take_all();
    Job* oldest = nullptr;
    while (newest != nullptr) {
      Job* const older = std::exchange(newest->older, oldest);
      oldest = std::exchange(newest, older);
    }
    return oldest;
  }
  void run_all() noexcept { end_all(true); }
  void drop_all() noexcept { end_all(false); }
  void end_all(bool run) noexcept {
    for (Job* job = take_all(); job != nullptr;) {
      const std::unique_ptr<Job> ended(job);
      job = job->older;
      if (run) ended->run();
    }
  }

  const std::function<void(std::function<void()>)> post_;
  detail::IntrusiveStack<Job, &Job::older> waiting_;
};

BatchExecutor::BatchExecutor(std::function<void(std::function<void()>)> post) {
  if (post == nullptr) throw std::invalid_argument("BatchExecutor: post: null (expected: a function)");
  jobs_ = std::make_shared<internal::BatchJobs>(std::move(post));
}

void BatchExecutor::operator()(std::function<void()> job) const { jobs_->add(std::move(job)); }

}  // namespace hwt
