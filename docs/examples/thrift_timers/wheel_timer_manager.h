#pragma once

#include <thrift/concurrency/Exception.h>
#include <thrift/concurrency/TimerManager.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/hashed_wheel_timer.h"

namespace thrift_timers {

namespace concurrency = apache::thrift::concurrency;

/// A TimerManager of Thrift on a wheel with a tick of 1 ms. It works with libthrift as it is installed.
///
/// Guarantees: those of TimerManager, on the thread that the thread factory makes. A delay of 0 is due at once. After
/// an exception of a task, the other tasks run. remove(task) looks at one of 4,096 lists of timers, which take 230 kB.
/// Threads: any thread may call any member. Inside a task, stop() throws hwt::IllegalState, and the destructor ends the
/// program. The destructor must not race other calls.
/// Not for: a handle that is still locked when the manager is destroyed.
class WheelTimerManager final : public concurrency::TimerManager {
 public:
  ~WheelTimerManager() override {
    stop();
    if (thread_) thread_->join();  // does nothing for a detached thread
  }

  void start() override {
    const auto factory = threadFactory();
    if (!factory) throw concurrency::InvalidArgumentException();
    const std::lock_guard lock(starting_);
    if (state_ != UNINITIALIZED) return;
    thread_ = factory->newThread(worker_);
    thread_->start();
    // Until run() has begun, the wheel refuses timeouts, because it gets no thread from its own factory.
    while (wheel_.cancel(wheel_.try_add([] {}, std::chrono::hours(1))) != hwt::CancelResult::Cancelled) {
      std::this_thread::yield();
    }
    state_ = STARTED;
  }
  void stop() override {
    if (const std::lock_guard lock(starting_); state_ == UNINITIALIZED) state_ = STOPPED;
    wheel_.stop();
    state_ = STOPPED;
  }
  STATE state() const override { return state_; }
  size_t taskCount() const override { return static_cast<size_t>(wheel_.pending_timeouts()); }

  using TimerManager::add;
  Timer add(std::shared_ptr<concurrency::Runnable> task, const std::chrono::milliseconds& timeout) override {
    if (timeout.count() < 0) throw concurrency::InvalidArgumentException();
    return schedule(std::move(task), timeout);
  }
  Timer add(std::shared_ptr<concurrency::Runnable> task, const std::chrono::steady_clock::time_point& time) override {
    if (time < std::chrono::steady_clock::now()) throw concurrency::InvalidArgumentException();
    return schedule(std::move(task), time);
  }
  void remove(std::shared_ptr<concurrency::Runnable> task) override {
    if (state_ != STARTED) throw concurrency::IllegalStateException();
    bool found = false;
    for (const auto id : ids_of(task.get())) found |= wheel_.cancel(id) == hwt::CancelResult::Cancelled;
    if (!found) throw concurrency::NoSuchTaskException();
  }
  void remove(Timer timer) override {
    if (state_ != STARTED) throw concurrency::IllegalStateException();
    const auto entry = std::reinterpret_pointer_cast<Entry>(timer.lock());
    const auto result = entry ? wheel_.cancel(entry->id) : hwt::CancelResult::Gone;
    if (result == hwt::CancelResult::Gone) throw concurrency::NoSuchTaskException();
    if (result == hwt::CancelResult::Running) throw concurrency::UncancellableTaskException();
  }

 private:
  /// The body of the factory's thread, which may outlive the manager.
  struct Worker final : concurrency::Runnable {
    void run() override { wheel.run(); }

    hwt::HashedWheelTimer wheel{{
        .tick_duration = std::chrono::milliseconds(1),
        .thread_factory = [](const std::function<void()>&) { return std::thread(); },
    }};
  };
  struct Links {
    Links* next = this;
    Links* previous = this;
  };
  /// The timers of some tasks, in a circular list.
  struct Shard {
    std::mutex mutex;
    Links timers;
  };
  /// A timer, on the list of its shard as long as it exists. Its callable in the wheel owns it. Thrift's handle of it
  /// is a weak pointer to a type that only Thrift knows: it is converted, and never followed as that type.
  struct Entry final : Links {
    Entry(Shard& own, std::shared_ptr<concurrency::Runnable> runnable) : shard(own), task(std::move(runnable)) {
      const std::lock_guard lock(shard.mutex);
      previous = &shard.timers;
      next = std::exchange(previous->next, this);
      next->previous = this;
    }
    ~Entry() {
      const std::lock_guard lock(shard.mutex);
      previous->next = next;
      next->previous = previous;
    }

    Shard& shard;
    const std::shared_ptr<concurrency::Runnable> task;
    std::atomic<hwt::TimeoutId> id{};
  };

  Timer schedule(std::shared_ptr<concurrency::Runnable> task, hwt::When when) {
    Shard& shard = shard_of(task.get());
    const auto entry = std::make_shared<Entry>(shard, std::move(task));
    try {
      entry->id = wheel_.add([entry] { entry->task->run(); }, when);
    } catch (const hwt::IllegalState& refused) {
      throw concurrency::IllegalStateException(refused.what());
    }
    return std::shared_ptr<Task>(entry, reinterpret_cast<Task*>(entry.get()));
  }
  std::vector<hwt::TimeoutId> ids_of(const concurrency::Runnable* task) {
    std::vector<hwt::TimeoutId> ids;
    Shard& shard = shard_of(task);
    const std::lock_guard lock(shard.mutex);
    for (const Links* at = shard.timers.next; at != &shard.timers; at = at->next) {
      const Entry& entry = static_cast<const Entry&>(*at);
      if (entry.task.get() == task) ids.push_back(entry.id);
    }
    return ids;
  }
  Shard& shard_of(const void* task) { return shards_[reinterpret_cast<std::uintptr_t>(task) / 64 % shards_.size()]; }

  std::vector<Shard> shards_ = std::vector<Shard>(4096);
  const std::shared_ptr<Worker> worker_ = std::make_shared<Worker>();
  hwt::HashedWheelTimer& wheel_ = worker_->wheel;
  std::mutex starting_;
  std::shared_ptr<concurrency::Thread> thread_;
  std::atomic<STATE> state_{UNINITIALIZED};
};

}  // namespace thrift_timers
