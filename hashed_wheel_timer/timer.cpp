#include "hashed_wheel_timer/timer.h"

#include <new>
#include <stdexcept>

namespace hwt {

Timer::~Timer() = default;

TimerStats Timer::stats() const noexcept { return {.pending = pending_timeouts()}; }

LatencyHistogram Timer::lateness() const noexcept { return {}; }

Timeout Timer::refuse_argument(const char* what, OnRefusal on_refusal) {
  if (on_refusal == OnRefusal::Throw) throw std::invalid_argument(what);
  return {};
}

namespace {

detail::TaskSource source_of_shared(std::shared_ptr<TimerTask>& task) {
  const auto build = [](void* storage, void* source) -> TimerTask* {
    return ::new (storage) detail::SharedTask(std::move(*static_cast<std::shared_ptr<TimerTask>*>(source)));
  };
  return {build, &task, detail::TaskKind::Shared};
}

constexpr const char* kNullTask = "new_timeout: task: null (expected: a TimerTask)";

}  // namespace

Timeout Timer::schedule_shared(std::shared_ptr<TimerTask> task, Delay delay, OnRefusal on_refusal) {
  if (task == nullptr) return refuse_argument(kNullTask, on_refusal);
  return schedule_source(source_of_shared(task), delay, on_refusal);
}

Timeout Timer::schedule_shared(std::shared_ptr<TimerTask> task, std::chrono::steady_clock::time_point deadline,
                               OnRefusal on_refusal) {
  if (task == nullptr) return refuse_argument(kNullTask, on_refusal);
  return schedule_source(source_of_shared(task), deadline, on_refusal);
}

}  // namespace hwt
