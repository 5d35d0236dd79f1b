// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/engine/driven_engine.h"

#include "hashed_wheel_timer/detail/held_calls.h"
#include "hashed_wheel_timer/detail/saturating.h"
#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/time/clock.h"
#include "hashed_wheel_timer/internal/tuning.h"

namespace hwt::internal {

namespace {

constexpr std::int64_t kSlotsPerLevel = 64;
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

}  // namespace

/// Lives while a thread turns the wheel. Its destructor calls earlier_ if call() was called meanwhile on this thread.
/// If the timer was destroyed meanwhile, for example by a task, it finishes the destruction instead.
class DrivenEngine::Turn {
 public:
  explicit Turn(DrivenEngine& engine) : kept_(engine.weak_from_this().lock()), engine_(engine), lock_(engine.mutex_) {
    engine_.turning_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    const std::uint64_t forks = fork_count();
    if (std::exchange(engine_.forks_, forks) != forks) [[unlikely]]
      engine_.core_->lifecycle().adopt();
  }
  ~Turn() {
    // Once, because destructors of the user may still call the engine.
    const bool destroyed = std::exchange(engine_.destroyed_, false);
    // After a stop() only late entries are left: see ThreadedEngine::destroy(). A second stop() must leave
    // them, because it may come between a producer's look at the phase and its unpublish(). It would take that timeout,
    // and no thread would get it.
    if (destroyed && !engine_.finish()) engine_.worker_.cancel_all();
    engine_.turning_.store({}, std::memory_order_relaxed);
    if (destroyed) {
      // Without the mutex, because destructors of the user may still call the engine.
      lock_.unlock();
      engine_.unprocessed_.drop();
    } else if (engine_.owes_call_ && engine_.earlier_) {
      engine_.owes_call_ = false;
      make_call();
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  void make_call() noexcept {
    Sleeper& sleeper = engine_.core_->sleeper();
    sleeper.begin_call();  // so that earlier_ stays
    lock_.unlock();
    engine_.earlier_();
    sleeper.finish_call();
  }

  const std::shared_ptr<DrivenEngine> kept_;
  DrivenEngine& engine_;
  std::unique_lock<std::mutex> lock_;
};

DrivenEngine::DrivenEngine(Timer& timer, const Options& options, std::int64_t start, Core::Clock clock)
    : core_(new Core(timer, options, clock)),
      grid_{start, options.tick_duration.value().count()},
      clock_(core_->cycles()),
      present_(start),
      worker_(*core_, options, kSlotsPerLevel) {
  core_->set_now(start);
  core_->lifecycle().finish_start(start);
}

bool DrivenEngine::turning_here() const noexcept {
  return turning_.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

void DrivenEngine::refuse_inside_task(const char* what) const {
  if (turning_here()) throw IllegalState(std::string(what) + " cannot be called from inside a task");
}

std::size_t DrivenEngine::advance(std::int64_t by) {
  refuse_inside_task("advance()");
  const Turn turning(*this);
  transfer_all();
  return turn(present_ > kForever - by ? kForever : present_ + by, kAll, Advance::Step);
}

std::size_t DrivenEngine::advance_to(std::int64_t now, std::size_t max_tasks) {
  refuse_inside_task("advance_to()");
  const Turn turning(*this);
  transfer_all();
  return turn(std::max(now, present_), max_tasks, Advance::Jump);
}

std::size_t DrivenEngine::turn(std::int64_t now, std::size_t max_tasks, Advance advance) {
  // Only the thread that turns the wheel changes the time.
  if (advance == Advance::Jump) set_present(now);
  core_->counters().wakeups.add(1);
  std::size_t ran = 0;
  for (Tick due = worker_.next_due(); core_->running();) {
    const std::int64_t end = grid_.end_of(due);
    if (end > now || end == kForever || ran == max_tasks) break;
    if (advance == Advance::Step) set_present(std::max(end, present_));
    const std::size_t ran_now = worker_.expire(due, core_->now(), max_tasks - ran);
    ran += ran_now;
    const Tick worked_off = std::exchange(due, worker_.next_due());
    if (due != worked_off) core_->counters().ticks.add(1);
    if (ran_now != 0) core_->counters().note_lag(since(end));
    // After a jump, timeouts that tasks schedule wait for the next call. They are due after `now`, or at once without a
    // delay. The latter could keep this call from ending.
    if (advance == Advance::Step) {
      transfer_all();
      due = worker_.next_due();
    }
  }
  set_present(now);
  give_memory_back();
  return ran;
}

/// Saturates, because the time may jump further than nanoseconds::max().
std::chrono::nanoseconds DrivenEngine::since(std::int64_t time) const noexcept {
  const auto now = static_cast<std::uint64_t>(core_->now());
  return std::chrono::nanoseconds(static_cast<std::int64_t>(detail::distance(static_cast<std::uint64_t>(time), now)));
}

void DrivenEngine::set_present(std::int64_t now) noexcept {
  present_ = now;
  worker_.close_before(grid_.at(now));
  core_->set_now(now);
}

/// Takes only a few small steps, because the calling thread has other things to do.
void DrivenEngine::give_memory_back() noexcept {
  const std::int64_t now = present_;
  Collector& collector = worker_.collector();
  if (collector.next_step(now) > now) return;
  for (int steps = 0; steps != Tuning::kStepsAtOnce; ++steps) {
    const bool took_everything = transfer(now, 1, 0);
    if (worker_.has_near() || !core_->running() || !collector.step(now) || !took_everything) return;
  }
}

bool DrivenEngine::transfer_all() noexcept { return transfer(kForever, Tuning::kBegins, Tuning::kNaps); }

bool DrivenEngine::transfer(std::int64_t until, int begins, int naps) noexcept {
  for (; begins != 0 && core_->running(); --begins) {
    Pass pass = worker_.transfer(until);
    for (int far = Tuning::kFarPasses; pass != Pass::Done && core_->running(); pass = worker_.resume()) {
      if (until != kForever && !worker_.has_near() && --far == 0) return false;
      if (pass == Pass::Starved || (pass == Pass::HeldUp && naps-- == 0)) return false;
      if (pass == Pass::HeldUp) std::this_thread::sleep_for(std::chrono::nanoseconds(Tuning::kShortNap));
    }
    if (!worker_.is_waiting()) break;
  }
  return core_->running();
}

std::optional<std::int64_t> DrivenEngine::next_wakeup() {
  // While a task runs, the wheel must not be touched. The present time is never too late.
  if (turning_here()) return core_->now();
  const Turn turning(*this);
  core_->sleeper().end_calls();
  if (!core_->running()) return {};
  if (!transfer_all()) return core_->running() ? std::optional(core_->now()) : std::nullopt;
  told_ = next_call();
  if (told_ == kForever) return {};
  return told_;
}

std::int64_t DrivenEngine::next_call() noexcept {
  if (!earlier_) return is_asked() || has_ended() ? core_->now() : clock_.steady(grid_.end_of(next_due()));
  const Tick until =
      announce_sleep(core_->sleeper(), grid_, next_due(), grid_.at(clock_now()), [this] { return next_due(); });
  if (!is_asked() && !has_ended()) return clock_.steady(grid_.end_of(until));
  core_->sleeper().end_calls();
  return core_->now();
}

bool DrivenEngine::is_asked() const noexcept { return core_->inbox().asked() != 0; }

/// Returns whether no timeout is pending, although the inbox or the wheel still has a next due tick. Only a pass drops
/// the cancelled timeouts, so that next_call() no longer returns that tick.
bool DrivenEngine::has_ended() noexcept {
  return core_->counts_pending() && core_->pending() == 0 && next_due() != kNever;
}

std::optional<std::int64_t> DrivenEngine::drive(std::size_t max_tasks, std::size_t* ran) {
  refuse_inside_task("run_due()");
  const Turn turning(*this);
  core_->sleeper().end_calls();  // what tasks schedule is found below
  std::int64_t now = clock_now();
  const std::int64_t begun = clock_.steady(now);
  // A pass is needed if the latest one has left entries, a thread asks for one, or a timeout in the inbox is due. It is
  // also needed to drop the last cancelled timeouts, so that next_call() does not return their tick.
  const bool look = worker_.is_unfinished() || is_asked() || worker_.next_waiting() < grid_.at(now) || has_ended();
  if (look) {
    transfer(now, 1, 0);
    now = std::min(now, clock_now());  // it may have gone back, and the pass has taken timeouts that came since
  }
  const std::size_t ran_now = turn(now, max_tasks, Advance::Jump);
  if (ran != nullptr) *ran = ran_now;
  if (ran_now != 0) {
    // Another thread may have raised CycleRate::behind() between the two lines that have set `now` and `begun`.
    const std::int64_t took = std::max<std::int64_t>(core_->now() - begun, 0);
    core_->counters().busy.add(took);
    worker_.note_in_tasks(took);
  }
  if (!core_->running()) return {};
  const std::int64_t end = told_ = next_call();
  // Later than now, so that the loop sleeps, and the producer that sifts can go on.
  const Pass pass = worker_.pass();
  if (pass == Pass::HeldUp && worker_.has_near()) return std::min(end, begun + Tuning::kShortNap);
  if (pass == Pass::HeldUp || pass == Pass::Starved) return std::min(end, begun + Tuning::kNap);
  if (pass == Pass::More) return begun;
  if (end == kForever) return {};
  return end;
}

void DrivenEngine::on_earlier(std::function<void()> call) {
  refuse_inside_task("on_earlier()");
  between_calls([&] {
    earlier_.swap(call);
    core_->sleeper().set_outside(earlier_ ? this : nullptr);
    if (!earlier_ || !core_->running() || (next_call() >= told_ && !worker_.is_unfinished())) return;
    core_->sleeper().end_calls();  // one call is enough, but another thread may have begun one
    owes_call_ = true;
  });
}

/// Calls f() in a turn in which no thread calls earlier_. Waits for such calls without the mutex.
template <class F>
void DrivenEngine::between_calls(F f) {
  for (;; core_->sleeper().wait_for_calls()) {
    const Turn turning(*this);
    if (core_->sleeper().end_calls()) return f();
  }
}

void DrivenEngine::call() noexcept {
  if (turning_here()) {
    owes_call_ = true;
  } else if (!detail::HeldCalls::hold_back(core_->sleeper())) {
    earlier_();
  }
}

bool DrivenEngine::finish() noexcept {
  if (core_->lifecycle().phase() == Phase::Stopped) return false;
  core_->lifecycle().begin_stop();
  // Store (the phase), then load (the inbox): pairs with the light fence in Core::offer_as(). See ThreadedEngine::work.
  AsymmetricFence::heavy();
  core_->sleeper().end_calls();
  unprocessed_.set(worker_.cancel_all());
  core_->lifecycle().finish_stop();
  return true;
}

std::vector<Timeout> DrivenEngine::stop() {
  // A thread of the parent may have been turning the wheel: see ThreadedEngine::destroy().
  if (core_->lifecycle().stop_in_forked_child()) return {};
  refuse_inside_task("stop()");
  std::vector<Timeout> timeouts;
  // Reserves room first, so that without memory the timer is not stopped. (More may arrive before it stops.)
  timeouts.reserve(static_cast<std::size_t>(std::max<std::int64_t>(core_->pending(), 0)));
  // An advance() of another thread starts no further task, and ends.
  core_->lifecycle().begin_stop();
  {
    const Turn turning(*this);
    // Even if the driver has announced no sleep. It may have been called already, have used up that call, and be about
    // to ask when it must come again. It then learns that it never must.
    if (finish()) owes_call_ = true;
    unprocessed_.take(timeouts);
  }
  tell_stopped(timeouts);  // last: a will_not_run() may destroy the timer, and this with it
  return timeouts;
}

void DrivenEngine::destroy() noexcept {
  if (core_->lifecycle().stop_in_forked_child()) {
    kept_in_forked_child_ = weak_from_this().lock();
    return core_->forget_timer_in_forked_child();
  }
  // A run_due() of another thread starts no further task, and announces no further sleep.
  core_->lifecycle().begin_stop();
  core_->forget_timer();
  const auto end = [&] {
    core_->sleeper().set_outside(nullptr);  // handles may still call the driver
    destroyed_ = true;
  };
  if (!turning_here()) return between_calls(end);
  core_->note_ended_on_worker();
  while (!core_->sleeper().end_calls()) core_->sleeper().wait_for_calls();
  end();
}

}  // namespace hwt::internal
