#pragma once

// clang-format off
#include <version>  // before Asio, which asks for macros of the standard library before it includes any of it
#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
// clang-format on

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "harness/loop_job.h"

namespace perf {

/// asio::steady_timer as the workloads see it: an io_context that is run by one thread and used by no other, which
/// leaves out its locks, and timers that know the type of their executor. Timers are used again for the next timeout;
/// Asio allocates its operations itself.
class AsioTimers {
 public:
  static constexpr bool kOneLoop = true;
  using Timer = asio::steady_timer::rebind_executor<asio::io_context::executor_type>::other;
  using Slots = std::vector<Timer>;

  explicit AsioTimers(std::chrono::milliseconds tick);
  AsioTimers(const AsioTimers&) = delete;
  AsioTimers& operator=(const AsioTimers&) = delete;
  ~AsioTimers() { stop(); }

  Slots make_slots(std::size_t size);

  template <class Receiver, class Delay>
  void schedule(Timer& slot, Receiver& receiver, std::uint64_t id, Delay delay) {
    slot.expires_after(delay);
    slot.async_wait([&receiver, id](const std::error_code& error) {
      if (!error) receiver.expired(id);
    });
  }

  bool cancel(Timer& slot) { return slot.cancel() != 0; }

  template <class Receiver, class Delay>
  void put_off(Timer& slot, Receiver& receiver, std::uint64_t id, Delay delay) {
    schedule(slot, receiver, id, delay);  // expires_after() cancels the wait that is pending
  }

  template <class Receiver, class Delay>
  void launch(Receiver& receiver, std::uint64_t id, Delay delay) {
    Timer& slot = free_slot();
    slot.expires_after(delay);
    slot.async_wait([this, &slot, &receiver, id](const std::error_code& error) {
      if (error) return;
      free_.push_back(&slot);
      receiver.expired(id);
    });
  }

  void take_over() {}  // a timer is in the heap at once
  void stop();

  void run_in_loop(LoopJob::Slice slice) { run_in_loop_every(std::chrono::milliseconds(0), std::move(slice)); }
  void run_in_loop_every(std::chrono::milliseconds interval, LoopJob::Slice slice);

 private:
  void await_job();
  void run_slice();
  void run_slice_and_pause();
  Timer& free_slot();

  asio::io_context io_{ASIO_CONCURRENCY_HINT_UNSAFE};
  asio::posix::stream_descriptor wake_;  // an eventfd: the one way in from another thread
  std::uint64_t wake_count_ = 0;
  LoopJob job_;
  Timer pause_;
  std::deque<Timer> launched_;
  std::vector<Timer*> free_;
  std::thread thread_;
};

}  // namespace perf
