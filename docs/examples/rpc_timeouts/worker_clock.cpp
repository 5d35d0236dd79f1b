#include "worker_clock.h"

#include <atomic>
#include <ctime>
#include <utility>

#if __has_include(<unistd.h>)
#include <pthread.h>
#include <unistd.h>  // _POSIX_THREAD_CPUTIME
#endif

#if defined(_POSIX_THREAD_CPUTIME) && _POSIX_THREAD_CPUTIME >= 0
#define RPC_HAS_THREAD_CLOCK 1
#endif

namespace rpc {

struct WorkerClock::State {
#ifdef RPC_HAS_THREAD_CLOCK
  clockid_t clock{};
  std::atomic<bool> known{false};
#endif
};

WorkerClock::WorkerClock() : state_(std::make_shared<State>()) {}

std::function<std::thread(std::function<void()>)> WorkerClock::thread_factory() const {
  return [state = state_](std::function<void()> work) {
    return std::thread([state, work = std::move(work)] {
#ifdef RPC_HAS_THREAD_CLOCK
      if (pthread_getcpuclockid(pthread_self(), &state->clock) == 0) {
        state->known.store(true, std::memory_order_release);  // pairs with the acquire in cpu_time()
      }
#endif
      work();
    });
  };
}

std::optional<std::chrono::nanoseconds> WorkerClock::cpu_time() const {
#ifdef RPC_HAS_THREAD_CLOCK
  timespec used{};
  if (state_->known.load(std::memory_order_acquire) && clock_gettime(state_->clock, &used) == 0) {
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  }
#endif
  return std::nullopt;
}

}  // namespace rpc
