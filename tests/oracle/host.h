#pragma once

// A timer of any kind, and the thread that drives it.

#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/hierarchical_wheel_timer.h"
#include "hashed_wheel_timer/loop_timer.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/oracle/preemption.h"
#include "tests/oracle/setup.h"

namespace hwt::oracle {

class Host {
 public:
  Host(const Setup& setup, Options options, Preemption& preemption) : random_(1), preemption_(preemption) {
    options.tick_duration = setup.tick;
    options.ticks_per_wheel = setup.ticks_per_wheel;
    options.max_pending_timeouts = setup.limit;
    options.exact_clock = setup.exact_clock;
    options.trace_origins = setup.trace_origins;
    if (setup.is_threaded()) {
      options.thread_factory = [this](std::function<void()> work) {
        return std::thread([this, work = std::move(work)] { as_worker(work); });
      };
    }
    switch (setup.kind) {
      case Kind::Hashed:
        use_worker_of(std::make_unique<HashedWheelTimer>(options), setup.own_run);
        break;
      case Kind::Hierarchical:
        use_worker_of(std::make_unique<HierarchicalWheelTimer>(options), setup.own_run);
        break;
      case Kind::Loop:
        drive(std::make_unique<LoopTimer>(options));
        break;
      case Kind::Manual:
        drive(std::make_unique<ManualTimer>(options));
    }
  }
  ~Host() { end_driver(); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  Timer& timer() { return *timer_; }
  std::function<TimePoint()> clock() {
    if (is_manual_) return [this] { return timer_->now(); };
    return [] { return steady_clock::now(); };
  }
  /// Destroys the timer, while timeouts are pending. No thread calls its run() then: see Setup::own_run.
  void destroy() {
    end_driver();
    timer_.reset();
  }
  /// Wakes the driver.
  void ring() {
    const std::lock_guard lock(mutex_);
    rung_ = true;
    woken_.notify_one();
  }

 private:
  /// `own_run`: a thread of this object calls run(). Otherwise the timer starts its worker.
  template <class T>
  void use_worker_of(std::unique_ptr<T> timer, bool own_run) {
    T* const typed = timer.get();
    timer_ = std::move(timer);
    if (!own_run) return;
    driver_ = std::thread([this, typed] { as_worker([typed] { typed->run(); }); });
  }
  template <class T>
  void drive(std::unique_ptr<T> timer) {
    is_manual_ = std::is_same_v<T, ManualTimer>;
    T* const typed = timer.get();
    timer_ = std::move(timer);
    typed->on_earlier([this] { ring(); });
    driver_ = std::thread([this, typed] {
      as_worker([this, typed] {
        while (!over_) turn(*typed);
      });
    });
  }

  void as_worker(const std::function<void()>& work) {
    thread_number = 100;  // no other thread of a round has this one
    const Preemption::Here here(preemption_);
    work();
  }

  std::size_t any_max_tasks() {
    return random_.next() % 2 == 0 ? random_.next() % 100 : std::numeric_limits<std::size_t>::max();
  }
  /// Sleeps for as long as the timer allows, so that a wake-up that is lost shows.
  void turn(LoopTimer& timer) {
    const std::optional<TimePoint> next = timer.run_due(any_max_tasks());
    std::unique_lock lock(mutex_);
    const auto is_rung = [this] { return rung_ || over_; };
    if (next) {
      woken_.wait_until(lock, *next, is_rung);
    } else {
      woken_.wait(lock, is_rung);
    }
    rung_ = false;
  }
  void turn(ManualTimer& timer) {
    const std::chrono::microseconds by(random_.between(0, 1'000));
    if (random_.next() % 2 == 0) {
      timer.advance(by);
    } else {
      timer.advance_to(timer.now() + by, any_max_tasks());
    }
    if (random_.next() % 4 == 0) timer.next_wakeup();
    std::this_thread::sleep_for(100us);
  }

  void end_driver() {
    if (!driver_.joinable()) return;
    over_ = true;
    ring();
    driver_.join();
  }

  perf::Random random_;  // only the driver uses it
  Preemption& preemption_;
  std::unique_ptr<Timer> timer_;
  bool is_manual_ = false;
  std::atomic<bool> over_{false};
  std::mutex mutex_;
  std::condition_variable woken_;
  bool rung_ = false;
  std::thread driver_;
};

}  // namespace hwt::oracle
