// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/engine/threaded_engine.h"

#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/platform/threads.h"
#include "hashed_wheel_timer/internal/platform/waiting.h"
#include "hashed_wheel_timer/internal/time/clock.h"

namespace hwt::internal {

namespace {

// The engine whose worker this thread is. Not compared by thread id: ids are used again.
constinit thread_local const ThreadedEngine* this_threads_worker = nullptr;

struct OnWorker {
  explicit OnWorker(const ThreadedEngine& engine) noexcept { this_threads_worker = &engine; }
  ~OnWorker() { this_threads_worker = nullptr; }
  OnWorker(const OnWorker&) = delete;
  OnWorker& operator=(const OnWorker&) = delete;
};

}  // namespace

/// Lets the new thread run the worker, or makes it return if start() has failed. The worker runs at most once, however
/// often the factory calls the function that it was given.
struct ThreadedEngine::Launch {
  enum class Order : int { Wait, Go, Cancel };

  // release: the new thread sees what start() has done.
  std::atomic<Order> order = Order::Wait;
  const std::thread::id starter = std::this_thread::get_id();

  void give(Order given) noexcept {
    order.store(given, std::memory_order_release);
    announce_change(order);
  }
  bool await() noexcept {
    // The factory has called the function itself instead of starting a thread. To wait here would block start() for
    // ever.
    if (std::this_thread::get_id() == starter) return false;
    while (order.load(std::memory_order_relaxed) == Order::Wait) await_change(order, Order::Wait);
    return order.exchange(Order::Cancel, std::memory_order_acquire) == Order::Go;
  }
};

ThreadedEngine::ThreadedEngine(Timer& timer, const Options& options)
    : core_(new Core(timer, options)),
      thread_factory_(options.thread_factory ? options.thread_factory : make_worker_thread) {}

bool ThreadedEngine::on_worker() const noexcept { return this_threads_worker == this; }

/// Returns Starting if this thread is to start the timer. Otherwise waits for another thread's start, and returns
/// Started or a later phase. Throws IllegalState in a forked child if another thread was starting the timer at the
/// fork.
Phase ThreadedEngine::begin_start(const char* caller) {
  Lifecycle& life = core_->lifecycle();
  for (;;) {
    if (life.begin_start()) return Phase::Starting;
    const Phase phase = life.phase();
    if (phase != Phase::Init && phase != Phase::Starting) return phase;
    if (life.is_of_another_process()) {
      throw IllegalState(std::string(caller) + ": another thread was starting the timer when the process forked");
    }
    life.wait_while(Phase::Starting);  // returns at once in Init: another thread could not make the worker
  }
}

void ThreadedEngine::start(const char* caller) {
  const Phase phase = begin_start(caller);
  if (phase == Phase::Started) return;
  if (phase != Phase::Starting) throw IllegalState(std::string(caller) + ": the timer has been stopped");
  Lifecycle& life = core_->lifecycle();
  std::shared_ptr<Launch> launch;
  try {
    launch = std::make_shared<Launch>();
    std::thread own = thread_factory_([this, launch] {
      if (launch->await()) work();
    });
    if (!own.joinable())
      throw IllegalState("thread_factory: returned no running thread (expected: a joinable std::thread)");
    role_.give_to(std::move(own));
  } catch (...) {
    if (launch) launch->give(Launch::Order::Cancel);
    life.give_start_up();
    throw;
  }
  life.finish_start(steady_now());
  // Last: as soon as there are tasks, one of them may destroy the timer.
  launch->give(Launch::Order::Go);
}

void ThreadedEngine::run() {
  Lifecycle& life = core_->lifecycle();
  if (life.is_of_another_process()) throw IllegalState("run: the process has forked since the timer was started");
  if (this_threads_worker != nullptr) throw IllegalState("run() cannot be called from inside a task");
  const Phase phase = begin_start("run");
  if (phase == Phase::Stopping || phase == Phase::Stopped) return;
  // After begin_start(), so that a forked child of a process that had not started the timer finds nobody in run().
  if (!role_.enter_run()) throw IllegalState("run: another thread is in run()");
  if (phase == Phase::Starting) life.finish_start(steady_now());
  if (!role_.take_over(core_->sleeper()) || work()) role_.leave_run();
}

/// Turns the wheel until the timer ends or another thread wants to turn it. Returns false if this may no longer be
/// used: in a forked child, or because a task has destroyed the timer.
bool ThreadedEngine::work() noexcept {
  const OnWorker here(*this);
  turn_wheel();
  // A task has forked: this is a copy of the worker, in a child that has stopped or destroyed the timer.
  if (core_->lifecycle().is_of_another_process()) return false;
  if (!role_.give_up()) return true;
  // Load (the phase, which ended turn_wheel()), then load (the inbox): pairs with the light fence in Core::offer_as(),
  // between a producer's store to the inbox and its look at the phase. A producer that still found the timer running
  // has its node in the inbox by now.
  AsymmetricFence::heavy();
  unprocessed_.set(cancel_all());
  if (!core_->ended_on_worker()) return true;
  unprocessed_.drop();
  delete this;
  return false;
}

void ThreadedEngine::finish() noexcept {
  Lifecycle& life = core_->lifecycle();
  // If stop_unstarted() or begin_stop() fails, another thread has changed the phase, and the loop reads it again.
  for (;;) {
    switch (const Phase phase = life.phase()) {
      case Phase::Init:
        if (!life.stop_unstarted()) break;
        instance_.release();
        return;
      case Phase::Started:
        if (!life.begin_stop()) break;
        core_->sleeper().wake();
        role_.await_end();
        instance_.release();
        life.finish_stop();
        return;
      case Phase::Starting:
      case Phase::Stopping:
        life.wait_while(phase);
        break;
      case Phase::Stopped:
        return;
    }
  }
}

std::vector<Timeout> ThreadedEngine::stop() {
  if (core_->lifecycle().stop_in_forked_child()) return {};
  if (on_worker()) throw IllegalState("stop() cannot be called from inside a task");
  std::vector<Timeout> timeouts;
  // Reserves room first, so that without memory the timer is not stopped. (More may arrive before it stops.)
  timeouts.reserve(static_cast<std::size_t>(std::max<std::int64_t>(core_->pending(), 0)));
  finish();
  unprocessed_.take(timeouts);
  tell_stopped(timeouts);  // last: a will_not_run() may destroy the timer, and this with it
  return timeouts;
}

void ThreadedEngine::destroy() noexcept {
  Lifecycle& life = core_->lifecycle();
  if (life.stop_in_forked_child()) return core_->forget_timer_in_forked_child();
  core_->forget_timer();
  if (on_worker()) {
    // The task that runs now has destroyed the timer: the worker finishes on its own after it.
    life.begin_stop();
    role_.detach();
    core_->note_ended_on_worker();
    return;
  }
  finish();
  unprocessed_.drop();
  // Drops the timer's references to timeouts whose entries came after the worker had emptied the inbox. Their producers
  // found the timer stopped, but threads that knew the ids had cancelled them before. None is pending.
  cancel_all();
  delete this;
}

}  // namespace hwt::internal
