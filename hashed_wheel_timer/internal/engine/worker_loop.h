#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "hashed_wheel_timer/internal/core/tick_grid.h"
#include "hashed_wheel_timer/internal/engine/driver.h"
#include "hashed_wheel_timer/internal/engine/threaded_engine.h"
#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/platform/exact_sleeps.h"
#include "hashed_wheel_timer/internal/platform/request_clock.h"
#include "hashed_wheel_timer/internal/report/log.h"

namespace hwt::internal {

/// The worker thread: when it looks into the inbox, and how long it sleeps.
///
/// A look into the inbox may take longer than a tick. The heavy fence alone takes more than a microsecond and
/// interrupts the producers, and each entry leaves a producer's cache. So only expiry follows the tick. Other work,
/// above all collecting cancelled nodes, is done once in Inbox::kSoon, if the worker has something to do then. Past
/// ticks are processed together, as many as fit into that time. With a tick of that length or more, this is one tick at
/// a time.
///
/// A worker that is woken for an earlier deadline does not take the timeout, but sleeps on until that deadline.
/// Otherwise each request of a server with few requests would wake it. It would take the timeout, find it cancelled,
/// and know of no deadline again. Then the next request would wake it.
template <Wheel W>
class WorkerLoop final : public ThreadedEngine {
 public:
  WorkerLoop(Timer& timer, const Options& options, std::int64_t wheel_size)
      : ThreadedEngine(timer, options),
        tick_duration_(options.tick_duration.count()),
        ticks_at_once_(std::max<Tick>(Inbox::kSoon / tick_duration_, 1)),
        collects_every_(std::max<std::int64_t>(Inbox::kSoon - tick_duration_, 0)),
        counts_cycles_(core().cycles().wanted()),
        clock_(core().cycles()),
        driver_(core(), options, wheel_size) {}

 private:
  TickGrid grid() noexcept { return {core().lifecycle().start_time(), tick_duration_}; }
  bool is_tick_short() const noexcept { return tick_duration_ < Inbox::kSoon; }

  using Pass = typename Driver<W>::Pass;

  /// Netty: Worker.run. It has the order of Netty 4.1, and of 4.2 after #15899, with two differences. Ticks in which
  /// nothing is due are skipped, and the worker sleeps while nothing is due.
  void turn() noexcept override {
    // 50 us of slack do not matter for a tick of a millisecond, and the processor can sleep longer.
    const ExactSleeps exact(is_tick_short());
    took_all_ = clock_.now();
    while (core().running()) {
      const std::int64_t now = clock_.now();
      if (counts_cycles_ && !core().cycles().wanted()) [[unlikely]]
        tell_that_clocks_disagree();
      const Tick current = grid().at(now);
      past_before_ = std::min(past_before_, current);
      const bool look = must_look(now, current);
      if (look) transfer(now);
      if (!core().running()) break;  // by a cancelled() that has destroyed the timer, say
      const Tick due = driver_.next_due();
      const bool collect = looked_ != now && now - looked_ >= collects_every_ && has_work(current);
      if (due < current) {
        work_off(due, current);
        if (!core().running()) break;
      }
      if (collect) {
        transfer(now);
      } else if (due >= current && pass_ != Pass::More) {
        // Memory is only given back right after a pass.
        if (look && pass_ == Pass::Done && driver_.collector().step(now)) continue;
        sleep(now, due);
      }
    }
  }

  /// Returns whether a pass must come before ticks are processed. All timeouts that are due before the current tick
  /// must be in the wheel then, for the order of ticks.
  bool must_look(std::int64_t now, Tick current) noexcept {
    return is_unfinished() || driver_.is_urgent() || driver_.next_waiting() < current || take_all_at() <= now ||
           driver_.collector().next_step(now) <= now || (!is_tick_short() && has_work(current));
  }

  /// Makes a pass. It takes all if it must, or if the pass that it continues takes all.
  void transfer(std::int64_t now) noexcept {
    takes_all_ = (takes_all_ && is_unfinished()) || driver_.is_urgent() || core().inbox().all_awaited() ||
                 driver_.collector().next_step(now) <= now || now - took_all_ >= kTakesAllEvery;
    pass_ = driver_.transfer(past_before_, now, takes_all_);
    // Nothing else in the inbox is due before. So timeouts of past ticks that the next pass finds came later.
    if (!is_unfinished()) past_before_ = grid().at(now);
    if (pass_ == Pass::Done) took_all_ = now;
    looked_ = now;
  }

  /// Returns whether another pass must follow without waiting for anything new.
  bool is_unfinished() const noexcept { return pass_ > Pass::Near; }

  /// Returns when a pass must take the entries that the latest one has left, or that another thread has cancelled.
  /// Their producers may do nothing more.
  std::int64_t take_all_at() noexcept {
    const bool left = pass_ == Pass::Near && driver_.next_waiting() != kNever;
    return left || core().inbox().has_dead() ? took_all_ + kTakesAllEvery : kForever;
  }

  void tell_that_clocks_disagree() noexcept {
    counts_cycles_ = false;
    std::array<char, 160> line;
    std::snprintf(line.data(), line.size(),
                  "the cycle counter and steady_clock disagree; the timer reads steady_clock from now on, and runs all "
                  "tasks %.3f ms later",
                  static_cast<double>(core().cycles().behind()) / 1e6);
    warn(line.data());
  }

  bool has_work(Tick current) const noexcept { return driver_.next_due() < current || driver_.is_awaited(); }

  /// Expires past ticks. Expires all of them if there is more to take, because otherwise each would wait for a pass.
  void work_off(Tick due, Tick current) noexcept {
    std::int64_t begun = clock_.now();
    do {
      const typename Driver<W>::Expired expired =
          driver_.expire_before(current - due > ticks_at_once_ ? due + ticks_at_once_ : current, begun, kTasksAtOnce);
      begun = clock_.now();
      // No lag if nothing ran: timeouts were only read, or came down a level, and their new slot may have begun long
      // before.
      if (expired.tasks != 0) {
        core().counters().note_lag(std::chrono::nanoseconds(begun - grid().end_of(expired.first)));
      }
      core().counters().ticks.add(expired.ticks);
      due = driver_.next_due();
    } while (pass_ == Pass::More && due < current && core().running());
  }

  /// Sleeps until the end of the next tick with a due timeout, in the wheel or in the inbox. Timeouts stay in the inbox
  /// until then, because most are cancelled soon. That is cheaper before they are in the wheel, and their producer
  /// drops the entries. The sleep is shorter if the latest pass was held up or starved, and to give memory back.
  void sleep(std::int64_t now, Tick due) noexcept {
    const Tick current = grid().at(now);
    const auto wanted = [&] {
      const Tick tick = std::min(due, driver_.next_waiting());
      if (driver_.is_urgent()) return std::min(tick, current);
      if (!driver_.is_awaited()) return tick;
      // No thread wakes the worker for it if the worker itself has cancelled: see Core::wake_for_cancelled_hook().
      return std::min(tick, std::max(current, grid().at(looked_ + collects_every_)));
    };
    // Known deadlines are announced at once. Otherwise each thread that schedules meanwhile would wake the worker,
    // however late its deadline is.
    const Tick known = wanted();
    if (known < current) return;
    // From now on a timeout of an earlier tick must wake the worker.
    announce(known, current);
    AsymmetricFence::heavy();
    // This finds all that came before the fence. Nothing leaves the inbox meanwhile, so the result is `known` or
    // earlier. An announcement may be taken back without a fence: at worst a thread wakes the worker in vain.
    const Tick until = wanted();
    if (until < current) return core().sleeper().retract();
    if (until != known) announce(until, current);
    core().sleeper().sleep_until(clock_.steady(std::min(grid().end_of(until), next_pass(now, current))));
    core().counters().wakeups.add(1);
    past_before_ = until;  // what came since, and is due earlier, woke the worker at once
  }

  /// Returns the time of the next pass if nothing comes.
  std::int64_t next_pass(std::int64_t now, Tick current) noexcept {
    if (is_unfinished()) return std::min(now + kNap, std::max(grid().end_of(current), now + kShortNap));
    return std::min(driver_.collector().next_step(now), take_all_at());
  }

  /// Until the end of this tick no thread needs to wake the worker, because past deadlines are due then, too.
  void announce(Tick until, Tick current) noexcept {
    core().sleeper().announce(until == current ? Sleeper::kNobody : grid().begin_of(until));
  }

  Node* cancel_all() noexcept override { return driver_.cancel_all(); }

  // A pass leaves new timeouts to their producers, because most are cancelled soon. But producers that do nothing
  // more leave dead entries behind, so from time to time a pass takes all.
  static constexpr std::int64_t kTakesAllEvery = 1'000'000'000;
  // How long to sleep before a lack of memory, or a producer that sifts its place, may be over.
  static constexpr std::int64_t kNap = 1'000'000;
  static constexpr std::int64_t kShortNap = 50'000;
  // The number of tasks of short ticks between two looks at the clock and the inbox. Their cost is small beside so many
  // tasks. stats() computes the lag of all of them from one reading.
  static constexpr std::size_t kTasksAtOnce = 64;

  const std::int64_t tick_duration_;
  const Tick ticks_at_once_;
  const std::int64_t collects_every_;  // a tick less, as a sleep ends with one
  // A deadline in the inbox before this tick had passed when it was scheduled, or the worker woke up too late for it.
  // Either way the timeout is due at the next point of the grid.
  Tick past_before_ = 0;
  Pass pass_ = Pass::More;     // how the latest pass ended
  bool takes_all_ = true;      // it took all, not only near deadlines
  std::int64_t looked_ = 0;    // its time
  std::int64_t took_all_ = 0;  // the time of the latest one that took all
  bool counts_cycles_;
  WorkerClock clock_;
  Driver<W> driver_;
};

}  // namespace hwt::internal
