#pragma once

// Declarations that the code blocks of docs/guide.md use but do not show. The blocks are only compiled, so nothing is
// defined here.

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>

#include "hashed_wheel_timer/batch_executor.h"
#include "hashed_wheel_timer/calendar.h"
#include "hashed_wheel_timer/coroutine.h"
#include "hashed_wheel_timer/deadline.h"
#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/hierarchical_wheel_timer.h"
#include "hashed_wheel_timer/jitter.h"
#include "hashed_wheel_timer/keyed_timer.h"
#include "hashed_wheel_timer/loop_timer.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/passive_wheel.h"
#include "hashed_wheel_timer/repeated_timer.h"
#include "hashed_wheel_timer/schedule.h"
#include "hashed_wheel_timer/stop_after.h"
#include "hashed_wheel_timer/timeout_scope.h"

#if __has_include(<prometheus/exposer.h>)
#include <prometheus/exposer.h>

#include "hashed_wheel_timer/prometheus.h"
#else
namespace prometheus {
struct Collectable {};
struct Exposer {
  explicit Exposer(const char* address);
  void RegisterCollectable(std::weak_ptr<Collectable> collectable);
};
}  // namespace prometheus
namespace hwt::prometheus {
template <class T = hwt::Timer>
struct TimerCollector : ::prometheus::Collectable {
  TimerCollector(const T& timer, std::map<std::string, std::string> labels = {});
};
}  // namespace hwt::prometheus
#endif

using namespace std::chrono_literals;

void fail_request(std::uint64_t id);
void reject_request(std::uint64_t id);
void deliver_answer(std::uint64_t id);

struct Connection {
  explicit Connection(int socket);
  void close();
  void ping();
};
bool try_to_connect();
bool work();
void report();

void handle(epoll_event& event);

void log_slow(const char* what, std::chrono::nanoseconds ran);

struct Pool {
  void post(std::function<void()> job);
};

// A coroutine type of the user.
template <class T>
struct Returns {
  void return_value(T value);
};
template <>
struct Returns<void> {
  void return_void();
};
template <class T>
struct Task {
  struct promise_type : Returns<T> {
    Task get_return_object();
    std::suspend_always initial_suspend() noexcept;
    std::suspend_always final_suspend() noexcept;
    void unhandled_exception();
  };
  bool await_ready();
  void await_suspend(std::coroutine_handle<> awaiting);
  T await_resume();
};
struct Request {};
struct Answer {};
Task<Answer> call(Request request, std::stop_token stop);

// The parameters of the functions that contain the blocks.
#define GIVEN \
  hwt::HashedWheelTimer &timer, std::uint64_t id, std::shared_ptr<Connection> connection, int socket, Pool &pool
