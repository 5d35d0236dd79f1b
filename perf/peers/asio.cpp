// The workloads on the timers of Asio.

#include <sys/eventfd.h>
#include <unistd.h>

// clang-format off
#include <version>  // before Asio, which tests macros of the standard library first
#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/version.hpp>
// clang-format on

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "perf/workloads/loop_job.h"
#include "perf/workloads/runner.h"

namespace hwt::perf {
namespace {

void check(bool succeeded, const char* what) {
  if (!succeeded) throw std::system_error(errno, std::generic_category(), what);
}

/// asio::steady_timer for the workloads. Only one thread uses the io_context, so it has no locks. The timers know the
/// type of their executor and are used again for the next timeout. Asio allocates its operations.
class AsioTimers {
 public:
  static constexpr bool kOneLoop = true;
  using Timer = asio::steady_timer::rebind_executor<asio::io_context::executor_type>::other;
  using Slots = std::vector<Timer>;

  explicit AsioTimers(std::chrono::microseconds /*tick*/)
      : wake_(io_, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), pause_(io_) {
    await_job();
    thread_ = std::thread([this] { io_.run(); });
  }
  AsioTimers(const AsioTimers&) = delete;
  AsioTimers& operator=(const AsioTimers&) = delete;
  ~AsioTimers() { stop(); }

  Slots make_slots(std::size_t size) {
    Slots slots;
    run_in_loop([&] {
      slots.reserve(size);
      while (slots.size() < size) slots.emplace_back(io_);
      return false;
    });
    return slots;
  }

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
    schedule(slot, receiver, id, delay);  // expires_after() cancels the pending wait
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

  void stop() {
    if (!thread_.joinable()) return;
    run_in_loop([this] {
      io_.stop();
      return false;
    });
    thread_.join();
  }

  void run_in_loop(LoopJob::Slice slice) { run_in_loop_every(std::chrono::milliseconds(0), std::move(slice)); }

  void run_in_loop_every(std::chrono::milliseconds interval, LoopJob::Slice slice) {
    job_.run(std::move(slice), interval, [this] {
      const std::uint64_t one = 1;
      check(write(wake_.native_handle(), &one, sizeof one) == sizeof one, "eventfd");
    });
  }

 private:
  void await_job() {
    wake_.async_read_some(asio::buffer(&wake_count_, sizeof wake_count_),
                          [this](const std::error_code& error, std::size_t) {
                            if (error) return;
                            await_job();
                            if (job_.interval() == std::chrono::milliseconds(0)) {
                              run_slice();
                            } else {
                              pause_.expires_after(std::chrono::milliseconds(0));
                              run_slice_and_pause();
                            }
                          });
  }

  // Asio polls the reactor before it runs a handler that a handler posted.
  void run_slice() {
    if (job_.run_slice()) asio::post(io_, [this] { run_slice(); });
  }

  void run_slice_and_pause() {
    if (!job_.run_slice()) return;
    pause_.expires_at(pause_.expiry() + job_.interval());
    pause_.async_wait([this](const std::error_code& error) {
      if (!error) run_slice_and_pause();
    });
  }

  Timer& free_slot() {
    if (free_.empty()) return launched_.emplace_back(io_);
    Timer& slot = *free_.back();
    free_.pop_back();
    return slot;
  }

  asio::io_context io_{ASIO_CONCURRENCY_HINT_UNSAFE};
  asio::posix::stream_descriptor wake_;  // an eventfd, for other threads
  std::uint64_t wake_count_ = 0;
  LoopJob job_;
  Timer pause_;
  std::deque<Timer> launched_;
  std::vector<Timer*> free_;
  std::thread thread_;
};

}  // namespace
}  // namespace hwt::perf

int main(int argc, char** argv) {
  using namespace hwt::perf;
  const std::string version = std::to_string(ASIO_VERSION / 100'000) + "." +
                              std::to_string(ASIO_VERSION / 100 % 1'000) + "." + std::to_string(ASIO_VERSION % 100);
  return run({{.name = "asio", .version = version, .one_loop = true, .measure = &measure<AsioTimers>}}, argc, argv);
}
