#pragma once

#include "hashed_wheel_timer/internal/engine/worker_thread.h"
#include "hashed_wheel_timer/internal/wheel/hashed_wheel.h"
#include "tests/support/test_support.h"

namespace hwt::test {

/// A HashedWheelTimer whose new_timeout() can hold a thread, as the system does when it preempts the thread.
class HeldTimer final : public ThreadedTimer {
 public:
  enum class At { Nowhere, Entry, Exit };

  explicit HeldTimer(Options options = {.tick_duration = 1ms}) {
    set_engine(new internal::WorkerThread<internal::HashedWheel>(*this, options, 64));
  }
  ~HeldTimer() override {
    if (!stays_held_) go_on();
    end();
  }

  /// Holds the next call of new_timeout(): at its entry, before it does anything, or at its exit, with the timeout
  /// pending.
  void hold_next(At at) { hold_ = at; }
  /// Holds the next call of new_timeout() at its entry. When it goes on, it schedules nothing and throws `error`.
  void hold_and_refuse_next(std::exception_ptr error) {
    refusal_ = std::move(error);
    hold_next(At::Entry);
  }
  [[nodiscard]] bool wait_until_held() { return here_.wait_until_entered(); }
  void go_on() { here_.let_go(); }
  /// From now on, the destructor does not let the held thread go on. The test calls go_on() while the destructor waits.
  void stay_held() { stays_held_ = true; }

 private:
  detail::Scheduled schedule(const detail::TaskSource& task, When when) override {
    const At at = hold_.exchange(At::Nowhere);
    if (at == At::Entry) {
      here_();
      if (refusal_) std::rethrow_exception(std::exchange(refusal_, nullptr));
    }
    const detail::Scheduled scheduled = Timer::schedule(task, when);
    if (scheduled.result() == detail::Result::NotStarted) {
      if (at == At::Exit) hold_next(at);  // the call goes on: it starts the timer and schedules again
    } else if (at == At::Exit) {
      here_();
    }
    return scheduled;
  }

  std::atomic<At> hold_ = At::Nowhere;
  std::exception_ptr refusal_;  // written before hold_; read by the held thread
  Hold here_;
  std::atomic<bool> stays_held_ = false;
};

/// Expects that the timer runs tasks of other threads while one thread is held.
inline void expect_others_run(Timer& timer) {
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(ran_in_task(timer, [] {})) << "the worker waits for a thread that stands still";
}

}  // namespace hwt::test
