#pragma once

#include <coroutine>

#include "tests/support/any_timer.h"

namespace hwt::test {

/// A coroutine that begins at once, and destroys itself when it ends.
struct Detached {
  struct promise_type {
    promise_type() { ++alive; }
    ~promise_type() { --alive; }
    promise_type(const promise_type&) = delete;
    promise_type& operator=(const promise_type&) = delete;

    Detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
  static inline std::atomic<int> alive = 0;
};

/// A coroutine that begins at once; its owner may destroy it while it sleeps. Its exceptions leave the call that
/// resumes it.
class Owned {
 public:
  struct promise_type {
    /// Sets `ended`. The resuming thread does not touch the frame afterwards.
    struct End {
      std::atomic<bool>& ended;
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<>) const noexcept { ended = true; }
      void await_resume() const noexcept {}
    };
    Owned get_return_object() noexcept { return Owned(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    End final_suspend() noexcept { return {ended}; }
    void return_void() const noexcept {}
    void unhandled_exception() const { throw; }

    std::atomic<bool> ended = false;
  };

  Owned() = default;
  Owned(Owned&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    destroy();
    frame_ = std::exchange(other.frame_, nullptr);
    return *this;
  }
  ~Owned() { destroy(); }

  void destroy() {
    if (frame_) std::exchange(frame_, nullptr).destroy();
  }
  void resume() const { frame_.resume(); }
  bool ended() const { return frame_.promise().ended; }

 private:
  explicit Owned(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}

  std::coroutine_handle<promise_type> frame_;
};

/// Runs every second job that waits in the queue, and drops the others.
inline void run_every_second_job(JobQueue& queue) {
  bool drop = false;
  for (const auto& job : queue.take())
    if (!std::exchange(drop, !drop)) job();
}

}  // namespace hwt::test
