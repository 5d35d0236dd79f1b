#include "hashed_wheel_timer/internal/worker_thread.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "hashed_wheel_timer/internal/asymmetric_fence.h"

#if defined(__linux__) || defined(__APPLE__)
#include <pthread.h>
#endif
#if !defined(_WIN32)
#include <unistd.h>
#endif

namespace hwt::internal {

namespace {

// Whose worker this thread is. Not compared by thread id: ids are used again.
constinit thread_local const WorkerThread* this_threads_worker = nullptr;

void name_this_thread() noexcept {
#if defined(__linux__)
  pthread_setname_np(pthread_self(), "hwt-worker");
#elif defined(__APPLE__)
  pthread_setname_np("hwt-worker");
#endif
}

std::int64_t this_process() noexcept {
#if defined(_WIN32)
  return 0;  // no fork
#else
  return getpid();
#endif
}

std::thread default_thread(std::function<void()> body) {
  return std::thread([body = std::move(body)] {
    name_this_thread();
    body();
  });
}

}  // namespace

/// Lets the new thread go, or sends it home when start() has failed after all: whatever the factory did with the body,
/// it runs at most once, and never on a timer that does not know of it.
struct WorkerThread::Launch {
  enum class Order { Wait, Go, Cancel };

  std::mutex mutex;
  std::condition_variable changed;
  Order order = Order::Wait;
  const std::thread::id starter = std::this_thread::get_id();

  void give(Order given) noexcept {
    {
      const std::lock_guard lock(mutex);
      order = given;
    }
    changed.notify_all();
  }
  bool await() {
    std::unique_lock lock(mutex);
    // A factory that calls the body itself instead of starting a thread would wait for ever.
    if (std::this_thread::get_id() == starter) return false;
    changed.wait(lock, [this] { return order != Order::Wait; });
    return std::exchange(order, Order::Cancel) == Order::Go;
  }
};

WorkerThread::WorkerThread(Timer& timer, const Options& options)
    : core_(new Core(timer, options)),
      thread_factory_(options.thread_factory ? options.thread_factory : default_thread) {}

bool WorkerThread::in_forked_child() const noexcept { return process_ != 0 && process_ != this_process(); }

bool WorkerThread::on_worker() const noexcept { return this_threads_worker == this; }

void WorkerThread::set_phase(Phase phase) noexcept {
  // release: pairs with the acquire in schedule().
  core_->phase.store(phase, std::memory_order_release);
  phase_changed_.notify_all();
}

void WorkerThread::start() {
  std::unique_lock lock(mutex_);
  const auto phase = [this] { return core_->phase.load(std::memory_order_relaxed); };
  phase_changed_.wait(lock, [&] { return phase() != Phase::Starting; });
  if (phase() == Phase::Started) return;
  if (phase() != Phase::Init) throw IllegalState("the timer cannot be started once stopped");

  // The factory is the user's: it is called without the lock.
  set_phase(Phase::Starting);
  process_ = this_process();
  lock.unlock();
  std::shared_ptr<Launch> launch;
  std::thread thread;
  try {
    launch = std::make_shared<Launch>();
    thread = thread_factory_([this, launch] {
      if (launch->await()) body();
    });
    if (!thread.joinable())
      throw IllegalState("thread_factory: returned no running thread (expected: a joinable std::thread)");
  } catch (...) {
    if (launch) launch->give(Launch::Order::Cancel);
    lock.lock();
    process_ = 0;
    set_phase(Phase::Init);
    throw;
  }
  lock.lock();
  thread_ = std::move(thread);
  core_->start_time = steady_now();
  set_phase(Phase::Started);
  launch->give(Launch::Order::Go);
}

Timeout WorkerThread::schedule(const detail::TaskSource& task, std::chrono::nanoseconds delay, bool throws) {
  // acquire: start_time is set when the phase is Started.
  if (core_->phase.load(std::memory_order_acquire) != Phase::Started) {
    try {
      start();
    } catch (...) {
      if (throws) throw;
      return {};
    }
  }
  Core::Refused refused;
  Timeout timeout = core_->schedule(task, steady_now(), delay.count(), refused);
  // Not a word to the core after a refusal: the refused task may have owned the timer.
  if (!timeout && throws) refused.raise();
  return timeout;
}

void WorkerThread::body() noexcept {
  this_threads_worker = this;
  turn();
  // Load (the phase, which ended turn()), then load (the queue): pairs with the light fence in Core::schedule(),
  // between a producer's store to the queue and its look at the phase. A producer that still found the timer running
  // has its node in the queue by now.
  AsymmetricFence::heavy();
  unprocessed_.set(empty());
  this_threads_worker = nullptr;
  if (delete_when_finished_) {
    unprocessed_.drop();
    delete this;
  }
}

void WorkerThread::finish(std::unique_lock<std::mutex>& lock) noexcept {
  const auto phase = [this] { return core_->phase.load(std::memory_order_relaxed); };
  if (in_forked_child()) return set_phase(Phase::Stopped);
  phase_changed_.wait(lock, [&] { return phase() != Phase::Starting; });
  if (phase() == Phase::Init) {
    set_phase(Phase::Stopped);
    instance_.release();
    return;
  }
  if (phase() != Phase::Started) {
    phase_changed_.wait(lock, [&] { return phase() == Phase::Stopped; });
    return;
  }
  set_phase(Phase::Stopping);
  lock.unlock();
  core_->sleeper.wake();
  thread_.join();
  instance_.release();
  lock.lock();
  process_ = 0;
  set_phase(Phase::Stopped);
}

std::vector<Timeout> WorkerThread::stop() {
  if (on_worker()) throw IllegalState("stop() cannot be called from inside a task");
  std::vector<Timeout> timeouts;
  // Room beforehand: without memory the timer is not stopped at all, unless some more arrive before it stops.
  timeouts.reserve(static_cast<std::size_t>(std::max<std::int64_t>(core_->pending(), 0)));
  {
    std::unique_lock lock(mutex_);
    finish(lock);
    if (in_forked_child()) return timeouts;
  }
  const std::lock_guard lock(mutex_);
  unprocessed_.take(timeouts);
  return timeouts;
}

void WorkerThread::destroy() noexcept {
  // Without the lock: process_ was written before the phase was Started, and whatever leads here saw that.
  core_->forget_timer(in_forked_child());
  if (on_worker()) {
    // The task that runs now has destroyed the timer: the worker finishes on its own after it.
    const std::lock_guard lock(mutex_);
    if (core_->phase.load(std::memory_order_relaxed) == Phase::Started) set_phase(Phase::Stopping);
    thread_.detach();
    delete_when_finished_ = true;
    return;
  }
  {
    std::unique_lock lock(mutex_);
    finish(lock);
    if (in_forked_child()) return;
  }
  unprocessed_.drop();
  delete this;
}

}  // namespace hwt::internal
