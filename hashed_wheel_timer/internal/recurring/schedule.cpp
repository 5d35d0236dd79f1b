// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/schedule.h"

#include "hashed_wheel_timer/detail/refuse_nan.h"
#include "hashed_wheel_timer/internal/platform/forked_child.h"
#include "hashed_wheel_timer/internal/recurring/scheduled_run.h"
#include "hashed_wheel_timer/internal/report/refuse.h"

namespace hwt {

using internal::refuse;
using std::chrono::nanoseconds;

namespace {

nanoseconds positive(const char* what, Delay delay) { return internal::positive(what, detail::number(what, delay)); }

nanoseconds not_negative(const char* what, Delay delay) {
  const nanoseconds value = detail::number(what, delay);
  if (value < nanoseconds::zero()) refuse(what, value, "0 ns or more");
  return value;
}

void expect_times(const char* what, const detail::SchedulePlan& plan) {
  if (plan.limit == 0) refuse(what, "moved from", "a Schedule that has its times");
}

detail::SchedulePlan plan_of_gaps(std::vector<nanoseconds> gaps, CatchUp catch_up) {
  if (gaps.empty()) refuse("Schedule: gaps", "none", "at least one");
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    internal::positive("Schedule: gaps[" + std::to_string(i) + "]", gaps[i]);
  }
  const nanoseconds first = gaps.front();
  return {.initial = first, .gaps = std::move(gaps), .first_gap = 1, .catch_up = catch_up};
}

}  // namespace

Schedule Schedule::once(Delay delay) {
  return Schedule(detail::SchedulePlan{.initial = not_negative("Schedule: delay", delay)});
}

Schedule Schedule::fixed_delay(Delay initial, Delay delay) {
  return Schedule(detail::SchedulePlan{.initial = not_negative("Schedule: initial", initial),
                                       .gaps = {positive("Schedule: delay", delay)},
                                       .repeat = true,
                                       .from_end = true});
}

Schedule Schedule::fixed_rate(Delay initial, Delay period, CatchUp catch_up) {
  return Schedule(detail::SchedulePlan{.initial = not_negative("Schedule: initial", initial),
                                       .gaps = {positive("Schedule: period", period)},
                                       .repeat = true,
                                       .catch_up = catch_up});
}

Schedule Schedule::sequence(std::vector<nanoseconds> gaps, CatchUp catch_up) {
  return Schedule(plan_of_gaps(std::move(gaps), catch_up));
}

Schedule Schedule::cycle(std::vector<nanoseconds> gaps, CatchUp catch_up) {
  detail::SchedulePlan plan = plan_of_gaps(std::move(gaps), catch_up);
  plan.repeat = true;
  return Schedule(std::move(plan));
}

Schedule Schedule::calendar(hwt::calendar::Rule rule, CatchUp catch_up,
                            std::function<std::chrono::system_clock::time_point()> wall_clock) {
  if (!rule) refuse("Schedule: rule", "null", "a function");
  return Schedule(
      detail::SchedulePlan{.catch_up = catch_up, .rule = std::move(rule), .wall_clock = std::move(wall_clock)});
}

Schedule Schedule::limit(std::uint64_t runs) const& { return Schedule(*this).limit(runs); }

Schedule Schedule::limit(std::uint64_t runs) && {
  if (runs == 0) refuse("Schedule: limit", "0", "1 or more");
  expect_times("Schedule: limit", plan_);
  plan_.limit = runs;
  return std::move(*this);
}

Schedule Schedule::jitter(std::function<nanoseconds(nanoseconds)> adjust) const& {
  return Schedule(*this).jitter(std::move(adjust));
}

Schedule Schedule::jitter(std::function<nanoseconds(nanoseconds)> adjust) && {
  if (!adjust) refuse("Schedule: jitter", "null", "a function");
  expect_times("Schedule: jitter", plan_);
  plan_.jitter = std::move(adjust);
  return std::move(*this);
}

ScheduledTask::ScheduledTask(std::shared_ptr<internal::ScheduledRun> run) noexcept : run_(std::move(run)) {}
ScheduledTask::~ScheduledTask() {
  if (!run_->in_forked_child()) return;
  internal::abandon(armed_);
  internal::abandon(run_);
}
bool ScheduledTask::cancel() { return !run_->in_forked_child() && run_->cancel(*this); }
bool ScheduledTask::done() const noexcept { return run_->done(); }
std::uint64_t ScheduledTask::runs() const noexcept { return run_->runs(); }
std::optional<std::chrono::steady_clock::time_point> ScheduledTask::next() const { return run_->next(); }

std::shared_ptr<ScheduledTask> schedule(Timer& timer, Schedule schedule, std::function<void()> job) {
  if (!job) refuse("schedule: job", "null", "a callable");
  const detail::SchedulePlan& plan = schedule.plan();
  expect_times("schedule: plan", plan);
  auto run =
      std::make_shared<internal::ScheduledRun>(timer, internal::make_timetable(plan), plan.limit, std::move(job));
  auto task = std::make_shared<ScheduledTask>(run);
  run->start(timer, task);
  return task;
}

}  // namespace hwt
