// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/c/c_timer.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#if !defined(_WIN32)
#include <pthread.h>
#endif

#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/hierarchical_wheel_timer.h"

namespace hwt::internal {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

std::atomic<std::uint64_t> c_process{1};

namespace {

#if !defined(_WIN32)
[[maybe_unused]] const int watches_forks =
    pthread_atfork(nullptr, nullptr, [] { c_process.fetch_add(1, std::memory_order_relaxed); });
#endif

// Programs that were compiled with the first version pass this size.
constexpr std::size_t kLeastSize = offsetof(hwt_options, start_ns) + sizeof(hwt_options::start_ns);

Options translate(const hwt_options& options) {
  const nanoseconds slow_task(options.slow_task_ns == HWT_NEVER ? 0 : options.slow_task_ns);
  Options cxx{
      .tick_duration = options.tick_ns == HWT_DEFAULT_TICK ? std::nullopt : std::optional(nanoseconds(options.tick_ns)),
      .ticks_per_wheel = options.ticks_per_wheel,
      .max_pending_timeouts = options.max_pending,
      .slow_task = options.slow_task_ns == 0 ? std::nullopt : std::optional(slow_task),
      .exact_clock = options.exact_clock != 0,
  };
  if (options.executor != nullptr) {
    cxx.executor = [execute = options.executor, context = options.executor_context](std::function<void()> job) {
      const auto run = [](void* argument) {
        const std::unique_ptr<std::function<void()>> taken(static_cast<std::function<void()>*>(argument));
        (*taken)();
      };
      call<void*, hwt_callback, void*>(execute, context, run, new std::function<void()>(std::move(job)));
    };
  }
  return cxx;
}

constinit thread_local std::array<char, 200> line{};
// The latest refusal, for which last_error() makes the line. `refused_caller` is null if no line is to be made.
constinit thread_local const char* refused_caller = nullptr;
constinit thread_local detail::Scheduled latest_refusal{};

int error_of(detail::Result refused) noexcept {
  switch (refused) {
    case detail::Result::Stopped:
      return ECANCELED;
    case detail::Result::Full:
    case detail::Result::NoThread:
      return EAGAIN;
    default:
      return ENOMEM;
  }
}

/// Returns the text without its first word. An IllegalState begins with the C++ function, "start:" or "stop()".
const char* without_function(const char* text) noexcept {
  text += std::strcspn(text, " ");
  return text + std::strspn(text, " ");
}

}  // namespace

void end_program() noexcept {
  try {
    throw;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "hashed_wheel_timer: a callback of the C interface threw: %s\n", e.what());
  } catch (...) {
    std::fputs("hashed_wheel_timer: a callback of the C interface threw\n", stderr);
  }
  std::abort();
}

hwt_options default_options() noexcept {
  const Options cxx;
  hwt_options options{};
  options.size = sizeof options;
  options.kind = HWT_HASHED_WHEEL;
  options.tick_ns = HWT_DEFAULT_TICK;
  options.ticks_per_wheel = static_cast<std::uint32_t>(cxx.ticks_per_wheel);
  options.max_pending = cxx.max_pending_timeouts;
  return options;
}

bool is_known_size(std::size_t size) noexcept { return size >= kLeastSize && size <= sizeof(hwt_options); }

std::unique_ptr<hwt_timer> make_timer(const hwt_options& options) {
  auto made = std::make_unique<hwt_timer>();
  const Options cxx = translate(options);
  const auto keep = [&](auto timer, auto*& of_its_kind) {
    of_its_kind = timer.get();
    made->used.emplace(*timer);
    made->timer = std::move(timer);
  };
  switch (options.kind) {
    case HWT_HASHED_WHEEL:
      keep(std::make_unique<HashedWheelTimer>(cxx), made->threaded);
      break;
    case HWT_HIERARCHICAL_WHEEL:
      keep(std::make_unique<HierarchicalWheelTimer>(cxx), made->threaded);
      break;
    case HWT_LOOP:
      keep(std::make_unique<CLoopTimer>(cxx), made->loop);
      break;
    case HWT_MANUAL:
      keep(std::make_unique<ManualTimer>(cxx, steady_clock::time_point(nanoseconds(options.start_ns))), made->manual);
      break;
    default:
      throw std::invalid_argument("kind: " + std::to_string(options.kind) + " (expected: 0 .. 3)");
  }
  return made;
}

int begin_use(const hwt_timer* timer, CCall& call) noexcept {
  if (timer == nullptr) return call.fail(EINVAL, "timer: NULL (expected: a timer of hwt_create())");
  if (timer->used->is_of_another_process())
    return call.fail(EPERM, "timer: in use by the parent of this process (expected: a timer of this process)");
  timer->process.store(c_process.load(std::memory_order_relaxed), std::memory_order_relaxed);
  return 0;
}

int CCall::fail(int error, const char* text) noexcept {
  refused_caller = nullptr;
  std::snprintf(line.data(), line.size(), "%s: %s", function_, text);
  return errno_ = error;
}

int CCall::fail_by_exception(int illegal) noexcept {
  try {
    throw;
  } catch (const std::invalid_argument& e) {
    return fail(EINVAL, e.what());
  } catch (const std::bad_alloc&) {
    return fail(ENOMEM, "out of memory");
  } catch (const IllegalState& e) {
    return fail(illegal, without_function(e.what()));
  } catch (const std::exception& e) {  // std::system_error: no thread, or no pthread key
    return fail(EAGAIN, e.what());
  }
}

void CCall::fail_by_refusal(detail::Scheduled refused) noexcept {
  refused_caller = function_;
  latest_refusal = refused;
  errno_ = error_of(refused.result());
}

const char* last_error() noexcept {
  if (const char* const caller = std::exchange(refused_caller, nullptr); caller != nullptr) {
    try {
      detail::raise(latest_refusal, caller);
    } catch (const std::bad_alloc&) {
      std::snprintf(line.data(), line.size(), "%s: out of memory", caller);
    } catch (const std::exception& e) {
      std::snprintf(line.data(), line.size(), "%s", e.what());
    }
  }
  return line.data();
}

}  // namespace hwt::internal
