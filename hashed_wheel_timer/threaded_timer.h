// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt {

namespace internal {
class ThreadedEngine;
}

/// The base of HashedWheelTimer and HierarchicalWheelTimer: a Timer with one worker thread, which the first timeout
/// starts, or a thread of the user's own that calls run(). The two differ in the wheel that the thread turns.
///
///   void warm_up(hwt::ThreadedTimer& timer) { timer.start(); }   // so that the first request makes no thread
///
/// Guarantees: those of Timer. The destructor waits for the task that runs on the worker. It destroys pending
/// callables, even if they have handles, and cancels TimerTasks. Inside a task it returns at once, and the worker does
/// this after that task.
/// Threads: any thread may call any member, also inside a task, except stop() on the worker. The destructor must not
/// race other calls on the timer, except run(). Calls on its Timeouts, and calls of the task that runs on the worker,
/// may race it. In a forked child, call only stop() and the destructor of a timer that was started. They return at
/// once.
/// Not for: interfaces. A framework takes a Timer.
/// Source: Netty's HashedWheelTimer.
class HWT_API ThreadedTimer : public Timer {
 public:
  /// Starts the worker, as the first new_timeout() does. Waits for the thread factory, not until the worker runs.
  /// Throws IllegalState after stop(), or if the factory returned no thread; std::system_error if the system gives no
  /// thread; std::bad_alloc; and exceptions of the factory. After an exception the timer is as before and can be
  /// started again.
  void start();

  /// Turns the wheel on the calling thread, until another thread calls stop() or the destructor, or a task destroys the
  /// timer. Starts the timer if it has not started; then the thread factory is never called. If its worker runs
  /// already, because another thread has scheduled, this thread takes over from it. It waits until the worker has run
  /// the tasks that are due, and has ended. Nothing is lost meanwhile, and other threads schedule as always.
  /// Returns at once after stop(). If it has run a task, it no longer touches the timer once stop() or the destructor
  /// has returned. Otherwise it may not have begun: join its thread after stop(), before you destroy the timer. A
  /// forked child that a task has made returns from run() when it has stopped or destroyed the timer. Throws
  /// IllegalState on a worker, of this timer or another one, while another thread is in run(), and in a forked child of
  /// a process that had started the timer. Then nothing has changed.
  ///
  ///   std::thread own([&timer] { set_up_thread(); timer.run(); });   // the threads of a framework's own factory
  ///   ...
  ///   timer.stop();
  ///   own.join();
  void run();

  std::vector<Timeout> stop() override;

 protected:
  /// Makes a timer without an engine; see set_engine().
  ThreadedTimer() = default;
  /// Precondition: end() was called.
  ~ThreadedTimer() override;

  /// Sets the engine. Called once, by the constructor of the derived class.
  void set_engine(internal::ThreadedEngine* engine) noexcept { engine_ = engine; }

  /// Ends the engine. Only the destructor of each derived class calls it, so that a running task still finds the
  /// timer's virtual functions.
  void end() noexcept;

  void begin() override;

 private:
  // Deletes itself, because a task may destroy the timer, and the engine still runs that task.
  internal::ThreadedEngine* engine_ = nullptr;
};

}  // namespace hwt
