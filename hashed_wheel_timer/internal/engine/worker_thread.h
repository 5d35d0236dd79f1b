// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "hashed_wheel_timer/internal/core/tick_grid.h"
#include "hashed_wheel_timer/internal/engine/threaded_engine.h"
#include "hashed_wheel_timer/internal/engine/worker.h"
#include "hashed_wheel_timer/internal/platform/exact_sleeps.h"
#include "hashed_wheel_timer/internal/tuning.h"

namespace hwt::internal {

/// The worker thread of a timer: when it looks into the inbox, and how long it sleeps. ThreadedEngine calls
/// turn_wheel() on the thread that has the WorkerRole.
///
/// A round of turn_wheel() has the steps of Netty's Worker, in Netty's order. Two things differ. The worker skips ticks
/// in which nothing is due, and sleeps while nothing is due. And it makes a pass over the inbox only if must_look(). A
/// pass may take longer than a short tick: the heavy fence alone takes more than a microsecond and interrupts the
/// producers, and each entry leaves a producer's cache.
///
/// A worker that is woken for an earlier deadline leaves the timeout in the inbox and sleeps until that deadline. If
/// the timeout is cancelled, the inbox still remembers its deadline. The wheel would forget it, and the worker would
/// announce a later end of its next sleep. On a quiet server each new request would then wake the worker.
template <Wheel W>
class WorkerThread final : public ThreadedEngine {
 public:
  WorkerThread(Timer& timer, const Options& options, std::int64_t wheel_size,
               std::int64_t unused_for = Collector::kUnusedFor)
      : ThreadedEngine(timer, options),
        tick_duration_(options.tick_duration.value().count()),
        ticks_at_once_(std::max<Tick>(Tuning::kSoon / tick_duration_, 1)),
        collects_every_(std::max<std::int64_t>(Tuning::kSoon - tick_duration_, 0)),
        clock_(core().cycles()),
        worker_(core(), options, wheel_size, unused_for) {}

 private:
  using Pass = typename Worker<W>::Pass;

  TickGrid grid() noexcept { return {core().lifecycle().start_time(), tick_duration_}; }

  void turn_wheel() noexcept override {
    // 50 us of slack do not matter for a tick of a millisecond, and the processor can sleep longer.
    const ExactSleeps exact(tick_duration_ < Tuning::kSoon);
    looked_ = clock_.now();
    awake_since_ = looked_;
    took_everything_ = looked_ - Tuning::kTakesEverythingEvery;  // if there is anything, the first pass takes it
    while (goes_on()) {
      const Tick tick = wait_for_next_tick();
      if (must_look(tick)) {
        open_inbox();
        worker_.process_cancelled_timeouts();
        worker_.transfer_timeouts_to_buckets();
      }
      worker_.close_before(tick);
      expire_timeouts(tick);
      give_memory_back(tick);
    }
  }

  /// Sleeps until a tick with due timeouts is over, or there is another reason for a pass. Returns the present tick.
  /// All ticks before it are over.
  Tick wait_for_next_tick() noexcept {
    for (;;) {
      now_ = clock_.now();
      note_awake(now_);
      if (now_ < looked_) [[unlikely]] {
        // The clock has gone back. These are times before this round.
        looked_ = now_ - 1;
        took_everything_ = std::min(took_everything_, looked_);
      }
      const Tick current = grid().at(now_);
      if (worker_.next_due() < current || must_look(current) || !goes_on()) return current;
      sleep(current);
    }
  }

  /// Returns whether the worker must make a pass before it expires the ticks before `current`. All timeouts that are
  /// due in these ticks must be in the wheel then, so that they run in the order of their ticks.
  bool must_look(Tick current) noexcept {
    if (worker_.next_waiting() < current || next_pass() <= now_) return true;
    // Passes that are only for cancelled nodes come about once in kSoon: a thread asks for one, or ticks are over.
    return !worker_.is_unfinished() && now_ - looked_ >= collects_every_ &&
           (is_asked_soon() || worker_.next_due() < current);
  }

  bool is_asked_soon() noexcept { return (core().inbox().asked() & (Inbox::kRechecks | Inbox::kEverything)) != 0; }

  /// Returns when a pass must come, even if no timeout in the inbox is due. The reasons, in the order of the code:
  ///   - a thread asks for one within this tick, or the latest pass has done as much as one may do
  ///   - producers hold entries back, or memory is short: in a short time that may be over
  ///   - the Collector makes a step: a pass over everything brings nodes back that the inbox still holds
  ///   - the latest pass has left entries, or other threads have cancelled some: their producers may never sift
  std::int64_t next_pass() noexcept {
    const std::uint32_t asked = core().inbox().asked();
    if ((asked & Inbox::kUrgent) != 0 || worker_.pass() == Pass::More) return now_;
    if (worker_.is_unfinished())
      return looked_ + std::clamp(grid().end_of(grid().at(looked_)) - looked_, Tuning::kShortNap, Tuning::kNap);
    const bool has_left = looked_ != took_everything_ && worker_.is_waiting();
    return std::min(worker_.collector().next_step(now_), has_left || (asked & Inbox::kDead) != 0
                                                             ? took_everything_ + Tuning::kTakesEverythingEvery
                                                             : kForever);
  }

  void open_inbox() noexcept {
    const bool everything = (core().inbox().asked() & (Inbox::kUrgent | Inbox::kEverything)) != 0 ||
                            worker_.collector().next_step(now_) <= now_ ||
                            now_ - took_everything_ >= Tuning::kTakesEverythingEvery;
    looked_ = now_;
    if (everything) took_everything_ = now_;
    worker_.open_inbox(now_, everything);
  }

  /// Expires some of the ticks before `current`. If the latest pass ended as Pass::More, expires all of them, because
  /// otherwise the worker would make another pass before it expires the next ones.
  void expire_timeouts(Tick current) noexcept {
    Tick due = worker_.next_due();
    if (due >= current) return;
    const std::int64_t now = clock_.now();
    if (now < now_) [[unlikely]] {  // it has gone back, and the pass has taken timeouts that came since
      current = std::min(current, grid().at(now));
      if (due >= current) return;
    }
    std::int64_t begun = clock_.steady(now);
    do {
      const typename Worker<W>::Expired expired = worker_.expire_ticks(
          current - due > ticks_at_once_ ? due + ticks_at_once_ : current, begun, Tuning::kTasksAtOnce);
      const std::int64_t ended = clock_.now();
      note_awake(ended);
      const std::int64_t began = std::exchange(begun, clock_.steady(ended));
      // If no task ran, there is no lag: timeouts were only skipped, or moved down a level from a slot that has long
      // begun.
      if (expired.tasks != 0) {
        core().counters().note_lag(std::chrono::nanoseconds(begun - grid().end_of(expired.first)));
        worker_.note_in_tasks(begun - began);
      }
      core().counters().ticks.add(expired.ticks);
      due = worker_.next_due();
    } while (worker_.pass() == Pass::More && due < current && core().running());
  }

  /// Makes a step of the Collector if this round made a pass over everything, and nothing is due.
  void give_memory_back(Tick current) noexcept {
    if (took_everything_ == now_ && worker_.next_due() >= current && !worker_.has_near() && core().running())
      worker_.collector().step(now_);
  }

  /// Sleeps until the end of the next tick with a due timeout, in the wheel or in the inbox, or until next_pass().
  void sleep(Tick current) noexcept {
    const auto wanted = [&] {
      const Tick tick = std::min(worker_.next_due(), worker_.next_waiting());
      if (!is_asked_soon()) return tick;
      // The sleep ends in time for the pass that a thread asks for. So no other thread has to wake the worker for that.
      return std::min(tick, std::max(current, grid().at(looked_ + collects_every_)));
    };
    // From the first announcement on, a thread that schedules a timeout of an earlier tick wakes the worker. Nothing
    // leaves the inbox meanwhile, so the result is the same tick or an earlier one.
    const Tick until = announce_sleep(core().sleeper(), grid(), wanted(), current, wanted);
    // Retracting needs no fence: at worst a thread wakes the worker in vain.
    if (until < current || must_look(current)) return core().sleeper().retract();
    note_awake(clock_.now());  // the announcement may file many places
    core().sleeper().sleep_until(clock_.steady(std::min(grid().end_of(until), next_pass())));
    core().counters().wakeups.add(1);
    awake_since_ = clock_.now();
    // A timeout of a tick before `until` that came in time has ended the sleep early. If its deadline had passed, it is
    // due at the end of the present tick. If the sleep was not ended early, such a timeout came too late, and is due at
    // `until`.
    worker_.close_before(std::min(until, grid().at(awake_since_)));
  }

  /// Counts the time until `now`. Less than zero if the clock has gone back.
  void note_awake(std::int64_t now) noexcept {
    core().counters().busy.add(std::max<std::int64_t>(now - awake_since_, 0));
    awake_since_ = now;
  }

  Node* cancel_all() noexcept override { return worker_.cancel_all(); }

  const std::int64_t tick_duration_;
  const Tick ticks_at_once_;
  const std::int64_t collects_every_;  // kSoon less a tick, because a sleep ends at the end of a tick
  // By the worker's clock:
  std::int64_t now_ = 0;              // when this round began
  std::int64_t looked_ = 0;           // when the latest pass began
  std::int64_t took_everything_ = 0;  // when the latest pass over everything began
  std::int64_t awake_since_ = 0;      // up to then, TimerStats::busy has the time
  WorkerClock clock_;
  Worker<W> worker_;
};

}  // namespace hwt::internal
