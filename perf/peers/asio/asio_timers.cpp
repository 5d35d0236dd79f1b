#include "asio_timers.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace perf {
namespace {

int make_eventfd() {
  const int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  return descriptor;
}

void signal(int descriptor) {
  const std::uint64_t one = 1;
  if (write(descriptor, &one, sizeof one) != sizeof one) {
    throw std::system_error(errno, std::generic_category(), "eventfd");
  }
}

}  // namespace

AsioTimers::AsioTimers(std::chrono::milliseconds /*tick*/) : wake_(io_, make_eventfd()), pause_(io_) {
  await_job();
  thread_ = std::thread([this] { io_.run(); });
}

AsioTimers::Slots AsioTimers::make_slots(std::size_t size) {
  Slots slots;
  run_in_loop([&] {
    slots.reserve(size);
    while (slots.size() < size) slots.emplace_back(io_);
    return false;
  });
  return slots;
}

void AsioTimers::stop() {
  if (!thread_.joinable()) return;
  run_in_loop([this] {
    io_.stop();
    return false;
  });
  thread_.join();
}

void AsioTimers::run_in_loop_every(std::chrono::milliseconds interval, LoopJob::Slice slice) {
  job_.run(std::move(slice), interval, [this] { signal(wake_.native_handle()); });
}

void AsioTimers::await_job() {
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

// A handler that is posted from a handler runs after the reactor has been polled.
void AsioTimers::run_slice() {
  if (job_.run_slice()) asio::post(io_, [this] { run_slice(); });
}

void AsioTimers::run_slice_and_pause() {
  if (!job_.run_slice()) return;
  pause_.expires_at(pause_.expiry() + job_.interval());
  pause_.async_wait([this](const std::error_code& error) {
    if (!error) run_slice_and_pause();
  });
}

AsioTimers::Timer& AsioTimers::free_slot() {
  if (free_.empty()) return launched_.emplace_back(io_);
  Timer& slot = *free_.back();
  free_.pop_back();
  return slot;
}

}  // namespace perf
