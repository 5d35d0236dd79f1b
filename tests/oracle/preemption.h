#pragma once

// Stops threads for a while, at any instruction: a signal handler that sleeps.

#include <pthread.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>

#include "perf/random.h"

namespace hwt::oracle {

class Preemption {
 public:
  explicit Preemption(std::uint64_t seed) : random_(seed) {
    struct sigaction action{};
    action.sa_handler = sleep;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, nullptr);
  }
  ~Preemption() {
    over_ = true;
    thread_.join();
  }
  Preemption(const Preemption&) = delete;
  Preemption& operator=(const Preemption&) = delete;

  /// While this object lives, the calling thread may be stopped. Allocates nothing.
  class Here {
   public:
    explicit Here(Preemption& preemption) : preemption_(preemption) { set(pthread_self(), true); }
    ~Here() { set(pthread_self(), false); }
    Here(const Here&) = delete;
    Here& operator=(const Here&) = delete;

   private:
    void set(pthread_t self, bool comes) {
      const std::lock_guard lock(preemption_.mutex_);
      for (Place& place : preemption_.places_) {
        if (comes ? place.used : !place.used || !pthread_equal(place.thread, self)) continue;
        place = {comes, self};
        return;
      }
    }
    Preemption& preemption_;
  };

 private:
  struct Place {
    bool used = false;
    pthread_t thread{};
  };

  static void sleep(int) {
    const int error = errno;
    const timespec time{0, nanoseconds.load(std::memory_order_relaxed)};
    nanosleep(&time, nullptr);
    errno = error;
  }

  void go() {
    while (!over_) {
      std::this_thread::sleep_for(std::chrono::microseconds(random_.between(100, 3'000)));
      const std::lock_guard lock(mutex_);
      const bool stops_all = random_.next() % 64 == 0;
      nanoseconds = stops_all ? 20'000'000 : random_.between(1'000, 1'000'000);
      const std::size_t chosen = random_.next() % places_.size();
      for (std::size_t i = 0; i < places_.size(); ++i) {
        if (places_[i].used && (stops_all || i == chosen)) pthread_kill(places_[i].thread, SIGUSR1);
      }
    }
  }

  static inline std::atomic<long> nanoseconds{0};

  perf::Random random_;
  std::mutex mutex_;
  std::array<Place, 12> places_;
  std::atomic<bool> over_{false};
  std::thread thread_{[this] { go(); }};
};

}  // namespace hwt::oracle
