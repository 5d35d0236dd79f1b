#pragma once

#include <coroutine>
#include <exception>

namespace common {

/// A coroutine that is never awaited. It runs to its first co_await at once and destroys its frame at its end.
struct Detached {
  struct promise_type {
    Detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }  // run_example() prints one line for it
  };
};

}  // namespace common
