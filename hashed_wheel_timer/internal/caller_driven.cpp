#include "hashed_wheel_timer/internal/caller_driven.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "hashed_wheel_timer/internal/asymmetric_fence.h"

namespace hwt::internal {

namespace {

constexpr std::int64_t kSlotsPerLevel = 64;
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

}  // namespace

/// While a thread turns the wheel. The last thing it does is to delete what a task has destroyed meanwhile.
class CallerDriven::Turn {
 public:
  explicit Turn(CallerDriven& timer) : timer_(timer), lock_(timer.mutex_) {
    timer_.turning_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  ~Turn() {
    timer_.turning_.store({}, std::memory_order_relaxed);
    // Once: what the destructor destroys may still ask the timer for something.
    if (!std::exchange(timer_.destroyed_, false)) return;
    timer_.finish();
    lock_.unlock();
    delete &timer_;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  CallerDriven& timer_;
  std::unique_lock<std::mutex> lock_;
};

CallerDriven::CallerDriven(Timer& timer, const Options& options, std::int64_t start)
    : core_(new Core(timer, options, Core::Clock::Given)),
      grid_{start, options.tick_duration.count()},
      driver_(*core_, options, kSlotsPerLevel) {
  core_->start_time = start;
  core_->set_now(start);
  // release: pairs with the acquire in schedule().
  core_->phase.store(Phase::Started, std::memory_order_release);
}

Timeout CallerDriven::schedule(const detail::TaskSource& task, std::int64_t delay, bool throws) {
  Core::Refused refused{Refusal::Stopped, 0};
  Timeout timeout;
  // acquire: start_time is set when the phase is Started.
  if (core_->phase.load(std::memory_order_acquire) == Phase::Started) {
    timeout = core_->schedule(task, core_->now(), delay, refused);
  }
  // Not a word to the core after a refusal: the refused task may have owned the timer.
  if (!timeout && throws) refused.raise();
  return timeout;
}

bool CallerDriven::turning_here() const noexcept {
  return turning_.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

void CallerDriven::refuse_inside_task(const char* what) const {
  if (turning_here()) throw IllegalState(std::string(what) + " cannot be called from inside a task");
}

std::size_t CallerDriven::advance(std::int64_t by) {
  refuse_inside_task("advance()");
  const Turn turning(*this);
  const std::int64_t now = core_->now();
  return turn(now > TickGrid::kForever - by ? TickGrid::kForever : now + by, kAll, Clock::Steps);
}

std::size_t CallerDriven::advance_to(std::int64_t now, std::size_t max_tasks) {
  refuse_inside_task("advance_to()");
  const Turn turning(*this);
  return turn(std::max(now, core_->now()), max_tasks, Clock::Jumps);
}

std::size_t CallerDriven::turn(std::int64_t now, std::size_t max_tasks, Clock clock) {
  if (core_->running()) transfer_all();
  // Nobody but the thread that turns the wheel changes the time.
  if (clock == Clock::Jumps) core_->set_now(now);
  std::size_t ran = 0;
  while (core_->running()) {
    const Tick due = driver_.next_due();
    const std::int64_t end = grid_.end_of(due);
    if (end > now || end == TickGrid::kForever) {
      // The ticks that have passed are no place for a timeout any more: whatever its delay, it waits for the next one.
      // Not beyond `due`: the last tick of all, which ends with time itself, is never over.
      driver_.skip_to(std::min(due, grid_.at(now)));
      break;
    }
    if (ran == max_tasks) break;
    if (clock == Clock::Steps) core_->set_now(std::max(end, core_->now()));
    ran += driver_.expire(due, max_tasks - ran);
    // After a jump, what comes in meanwhile is due later than `now`, or, with no delay, in a tick that is not to begin
    // before this call ends.
    if (clock == Clock::Steps) {
      transfer_all();
    } else {
      driver_.collect_cancelled();
    }
  }
  core_->set_now(now);
  return ran;
}

bool CallerDriven::transfer_all() noexcept {
  for (;;) {
    driver_.collect_cancelled();
    const auto transfer = driver_.transfer(grid_.at(core_->now()));
    if (!transfer.more) return !transfer.starved;
  }
}

std::optional<std::int64_t> CallerDriven::next_wakeup() {
  // While a task runs, the wheel must not be touched: a time that is safe.
  if (turning_here()) return core_->now();
  const Turn turning(*this);
  if (!core_->running()) return {};
  if (!transfer_all()) return core_->now();
  const std::int64_t end = grid_.end_of(driver_.next_due());
  if (end == TickGrid::kForever) return {};
  return end;
}

void CallerDriven::finish() noexcept {
  if (core_->phase.load(std::memory_order_relaxed) == Phase::Stopped) return;
  core_->phase.store(Phase::Stopping, std::memory_order_relaxed);
  // Load (the queue) after the store (the phase): pairs with the light fence in Core::schedule(). See
  // WorkerThread::body.
  AsymmetricFence::heavy();
  unprocessed_.set(driver_.empty());
  core_->phase.store(Phase::Stopped, std::memory_order_relaxed);
}

std::vector<Timeout> CallerDriven::stop() {
  refuse_inside_task("stop()");
  std::vector<Timeout> timeouts;
  // Room beforehand: without memory the timer is not stopped at all, unless some more arrive before it stops.
  timeouts.reserve(static_cast<std::size_t>(std::max<std::int64_t>(core_->pending(), 0)));
  // An advance() of another thread starts no further task, and ends.
  Phase phase = Phase::Started;
  core_->phase.compare_exchange_strong(phase, Phase::Stopping, std::memory_order_relaxed);
  const Turn turning(*this);
  finish();
  unprocessed_.take(timeouts);
  return timeouts;
}

void CallerDriven::destroy() noexcept {
  core_->forget_timer();
  if (turning_here()) {
    core_->phase.store(Phase::Stopping, std::memory_order_relaxed);
    destroyed_ = true;
    return;
  }
  const Turn turning(*this);
  finish();  // here, where cancelled() finds the wheel turning
  destroyed_ = true;
}

}  // namespace hwt::internal
