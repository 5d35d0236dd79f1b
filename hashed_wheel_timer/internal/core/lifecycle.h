// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <memory>

#include "hashed_wheel_timer/internal/platform/threads.h"
#include "hashed_wheel_timer/internal/platform/waiting.h"

namespace hwt::internal {

/// The phases of a timer. It accepts timeouts only in Started.
///
///   from      to        by
///   Init      Starting  the first start(), new_timeout() or run(); run() makes no thread, its caller is the worker
///   Starting  Init      that call, if it could not make the thread
///   Starting  Started   that call, once there is a thread
///   Init      Started   the constructor of a timer without a thread
///   Init      Stopped   stop() or the destructor of a timer that was never started
///   Started   Stopping  stop() or the destructor
///   Stopping  Stopped   the thread that ends the timer, once the wheel is empty and the worker has ended
///   not Init  Stopped   stop() or the destructor in a forked child, which has no worker
///   Started   Started   the first turn of a timer without a thread in a forked child, which changes only the process
/// If the thread factory forks, the start() goes on in the child too. It sets Started or Init there, even after
/// Stopped.
enum class Phase : std::uint8_t { Init, Starting, Started, Stopping, Stopped };

/// Returns whether an object of a timer is lost to this process, a forked child. `made_in` is the process that made the
/// object. `process_of_timer` is the process that has started or adopted the timer. If neither is this process, other
/// threads of the parent may have been changing the object: its locks stay taken, its data half changed.
inline bool is_lost_to_child(std::int64_t made_in, std::int64_t process_of_timer) noexcept {
  const std::int64_t here = this_process();
  return made_in != here && process_of_timer != here;
}

/// The phase of a timer, and its process: that in which it left Init, or a forked child that has adopted it. Both are
/// in one word without a lock, so that a forked child can always tell that it is another process. Any thread reads the
/// word. The table above names the threads that change it. A copy of the process outlives the timer.
///
/// Each change is a release, or a read-modify-write that keeps the release before it: a thread that reads it with
/// acquire sees what came before, the start time above all.
/// AsymmetricFence orders it with the inbox when the timer stops.
class Lifecycle {
 public:
  Phase phase() const noexcept { return phase_of(word_.load(std::memory_order_acquire)); }

  /// Relaxed: started() must be asked before start_time().
  bool running() const noexcept { return phase_of(word_.load(std::memory_order_relaxed)) == Phase::Started; }
  /// Returns whether the phase is Started, with acquire. If true, start_time() may be called.
  bool started() const noexcept { return phase() == Phase::Started; }

  /// Nanoseconds of the timer's clock; fixed from Started on.
  std::int64_t start_time() const noexcept { return start_time_; }

  /// This is a forked child, and the timer was the parent's when it forked. Its worker was not copied, and other
  /// threads of the parent may have been anywhere. So the child must not wait for anything that they could have locked,
  /// and must not free memory that they may have been using.
  bool is_of_another_process() const noexcept { return is_of_another_process(word_.load(std::memory_order_relaxed)); }

  /// Returns the process that has started or adopted the timer; 0 if none has.
  std::int64_t process() const noexcept { return process_->load(std::memory_order_relaxed); }
  /// Returns the place of that number, which outlives the timer.
  std::shared_ptr<const std::atomic<std::int64_t>> place_of_process() const noexcept { return process_; }

  /// Makes a started timer that of this process. Called by the thread that turns the wheel of a timer without a worker.
  /// It holds the lock of the wheel, so no other thread was turning the wheel at the fork.
  void adopt() noexcept {
    if (is_of_another_process() && change(Phase::Started, Phase::Started, this_process()))
      process_->store(this_process(), std::memory_order_relaxed);
  }

  /// Waits until the phase is no longer `phase`, which must be Starting or Stopping.
  void wait_while(Phase phase) const noexcept {
    assert(phase == Phase::Starting || phase == Phase::Stopping);
    for (;;) {
      const std::uint64_t seen = word_.load(std::memory_order_acquire);
      if (phase_of(seen) != phase) return;
      await_change(word_, seen);
    }
  }

  // These return false if the timer was not in the phase to leave. acquire: the next phase may undo work of the one
  // before.

  bool begin_start() noexcept { return change(Phase::Init, Phase::Starting, this_process()); }
  bool begin_stop() noexcept {
    const std::uint64_t word = word_.load(std::memory_order_relaxed);
    return change(Phase::Started, Phase::Stopping, process_of(word));
  }
  bool stop_unstarted() noexcept { return change(Phase::Init, Phase::Stopped, this_process()); }

  // Called by the one thread that has begun to start or to stop. A timer without a thread calls finish_start() in Init.
  // If the thread factory forks, the child may have set Stopped meanwhile.

  void give_start_up() noexcept {
    assert(phase() == Phase::Starting || phase() == Phase::Stopped);
    set(word_of(Phase::Init, 0));
  }
  void finish_start(std::int64_t start_time) noexcept {
    assert(phase() == Phase::Starting || phase() == Phase::Init || phase() == Phase::Stopped);
    start_time_ = start_time;
    set(word_of(Phase::Started, this_process()));
  }
  void finish_stop() noexcept {
    assert(phase() == Phase::Stopping);
    set(word_of(Phase::Stopped, this_process()));
  }

  /// If the timer is of another process, sets Stopped and keeps the id of that process. Returns whether it is. Another
  /// thread of the child may be in adopt(): then the first exchange decides. relaxed: it publishes nothing.
  bool stop_in_forked_child() noexcept {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    while (is_of_another_process(seen)) {
      const std::uint64_t stopped = word_of(Phase::Stopped, process_of(seen));
      if (word_.compare_exchange_weak(seen, stopped, std::memory_order_relaxed)) return true;
    }
    return false;
  }

 private:
  static constexpr int kProcessShift = 8;

  static constexpr Phase phase_of(std::uint64_t word) noexcept {
    return static_cast<Phase>(word & ((1U << kProcessShift) - 1));
  }
  static constexpr std::int64_t process_of(std::uint64_t word) noexcept {
    return static_cast<std::int64_t>(word >> kProcessShift);
  }
  static bool is_of_another_process(std::uint64_t word) noexcept {
    return phase_of(word) != Phase::Init && process_of(word) != this_process();
  }
  static constexpr std::uint64_t word_of(Phase phase, std::int64_t process) noexcept {
    return static_cast<std::uint64_t>(process) << kProcessShift | static_cast<std::uint64_t>(phase);
  }

  /// Changes the phase. Returns false if it is not `from`. Wakes no thread, because none waits for the end of Init or
  /// Started.
  bool change(Phase from, Phase to, std::int64_t process) noexcept {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    return phase_of(seen) == from &&
           word_.compare_exchange_strong(seen, word_of(to, process), std::memory_order_acq_rel);
  }
  void set(std::uint64_t word) noexcept {
    process_->store(process_of(word), std::memory_order_relaxed);
    word_.store(word, std::memory_order_release);
    announce_change(word_);
  }

  std::atomic<std::uint64_t> word_{word_of(Phase::Init, 0)};
  std::int64_t start_time_ = 0;
  // The process that has started or adopted the timer, for an object that outlives the timer: UsedTimer. Written by the
  // thread that changes word_, read by any thread. relaxed: a process looks only for its own id, which only its own
  // threads write.
  const std::shared_ptr<std::atomic<std::int64_t>> process_ = std::make_shared<std::atomic<std::int64_t>>(0);
};

}  // namespace hwt::internal
