#include "hashed_wheel_timer/internal/engine/manual_engine.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"

namespace hwt::internal {

namespace {

constexpr std::int64_t kSlotsPerLevel = 64;
constexpr int kStepsAtOnce = 8;
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

}  // namespace

/// Lives while a thread turns the wheel. At its end it deletes the engine, if a task has destroyed the timer.
class ManualEngine::Turn {
 public:
  explicit Turn(ManualEngine& engine) : engine_(engine), lock_(engine.mutex_) {
    engine_.turning_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  ~Turn() {
    engine_.turning_.store({}, std::memory_order_relaxed);
    // Once: what the destructor destroys may still call the engine.
    if (!std::exchange(engine_.destroyed_, false)) return;
    engine_.finish();
    lock_.unlock();
    delete &engine_;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  ManualEngine& engine_;
  std::unique_lock<std::mutex> lock_;
};

ManualEngine::ManualEngine(Timer& timer, const Options& options, std::int64_t start)
    : core_(new Core(timer, options, Core::Clock::Given)),
      grid_{start, options.tick_duration.count()},
      driver_(*core_, options, kSlotsPerLevel) {
  core_->set_now(start);
  core_->lifecycle().finish_start(start);
}

Timeout ManualEngine::schedule(const detail::TaskSource& task, std::int64_t deadline, bool throws) {
  Refused refused{Refusal::Stopped, 0};
  Timeout timeout;
  if (core_->lifecycle().started()) {
    timeout = core_->schedule(task, deadline, refused);
  }
  // The core may be gone after a refusal: the refused task may have owned the timer.
  if (!timeout && throws) refused.raise();
  return timeout;
}

bool ManualEngine::turning_here() const noexcept {
  return turning_.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

void ManualEngine::refuse_inside_task(const char* what) const {
  if (turning_here()) throw IllegalState(std::string(what) + " cannot be called from inside a task");
}

std::size_t ManualEngine::advance(std::int64_t by) {
  refuse_inside_task("advance()");
  const Turn turning(*this);
  const std::int64_t now = core_->now();
  return turn(now > kForever - by ? kForever : now + by, kAll, Clock::Steps);
}

std::size_t ManualEngine::advance_to(std::int64_t now, std::size_t max_tasks) {
  refuse_inside_task("advance_to()");
  const Turn turning(*this);
  return turn(std::max(now, core_->now()), max_tasks, Clock::Jumps);
}

std::size_t ManualEngine::turn(std::int64_t now, std::size_t max_tasks, Clock clock) {
  if (core_->running()) transfer_all();
  // Only the thread that turns the wheel changes the time.
  if (clock == Clock::Jumps) core_->set_now(now);
  std::size_t ran = 0;
  while (core_->running()) {
    const Tick due = driver_.next_due();
    const std::int64_t end = grid_.end_of(due);
    if (end > now || end == kForever) {
      // No timeout may enter a tick that has passed: whatever its delay, it waits for the next one. Not beyond `due`:
      // the last tick of all, which ends with time itself, is never over.
      driver_.skip_to(std::min(due, grid_.at(now)));
      break;
    }
    if (ran == max_tasks) break;
    if (clock == Clock::Steps) core_->set_now(std::max(end, core_->now()));
    ran += driver_.expire(due, core_->now(), max_tasks - ran);
    // After a jump, what tasks schedule waits for the next call: it is due after `now`, or, without a delay, at once,
    // and that would keep this call from ending.
    if (clock == Clock::Steps) transfer_all();
  }
  core_->set_now(now);
  give_memory_back();
  return ran;
}

/// Some small steps: whoever turns the wheel has other things to do.
void ManualEngine::give_memory_back() noexcept {
  const std::int64_t now = core_->now();
  Collector& collector = driver_.collector();
  if (collector.next_step(now) > now) return;
  for (int steps = 0; steps != kStepsAtOnce && core_->running() && transfer_all(); ++steps) {
    if (!collector.step(now)) break;
  }
}

bool ManualEngine::transfer_all() noexcept {
  for (;;) {
    // What was put into the inbox was put there at this time, or before.
    switch (driver_.transfer(grid_.at(core_->now()))) {
      case Pass::Done:
        return true;
      case Pass::Starved:
        return false;
      case Pass::HeldUp:
        // A producer is sifting its place. It is done soon, unless it is preempted.
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        break;
      case Pass::More:
        break;
    }
  }
}

std::optional<std::int64_t> ManualEngine::next_wakeup() {
  // While a task runs, the wheel must not be touched: now is never too late.
  if (turning_here()) return core_->now();
  const Turn turning(*this);
  if (!core_->running()) return {};
  if (!transfer_all()) return core_->now();
  const std::int64_t end = grid_.end_of(driver_.next_due());
  if (end == kForever) return {};
  return end;
}

void ManualEngine::finish() noexcept {
  if (core_->lifecycle().phase() == Phase::Stopped) return;
  core_->lifecycle().begin_stop();
  // Store (the phase), then load (the inbox): pairs with the light fence in Core::offer(). See ThreadedEngine::body.
  AsymmetricFence::heavy();
  unprocessed_.set(driver_.empty());
  core_->lifecycle().finish_stop();
}

std::vector<Timeout> ManualEngine::stop() {
  // A thread of the parent may have been turning the wheel: see ThreadedEngine::destroy().
  if (core_->lifecycle().is_of_another_process()) return {};
  refuse_inside_task("stop()");
  std::vector<Timeout> timeouts;
  // Room beforehand, so that without memory the timer is not stopped at all. (More may arrive before it stops.)
  timeouts.reserve(static_cast<std::size_t>(std::max<std::int64_t>(core_->pending(), 0)));
  // An advance() of another thread starts no further task, and ends.
  core_->lifecycle().begin_stop();
  {
    const Turn turning(*this);
    finish();
    unprocessed_.take(timeouts);
  }
  tell_stopped(timeouts);  // last: one of them may destroy the timer, and this with it
  return timeouts;
}

void ManualEngine::destroy() noexcept {
  if (core_->lifecycle().is_of_another_process()) return core_->forget_timer_in_forked_child();
  core_->forget_timer();
  if (turning_here()) {
    core_->lifecycle().begin_stop();
    destroyed_ = true;
    return;
  }
  const Turn turning(*this);
  finish();  // here, where cancelled() finds the wheel turning
  destroyed_ = true;
}

}  // namespace hwt::internal
