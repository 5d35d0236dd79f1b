// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/c/last_error.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt::internal {

namespace {

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

int fail(int error, const char* caller, const char* text) noexcept {
  refused_caller = nullptr;
  std::snprintf(line.data(), line.size(), "%s: %s", caller, text);
  errno = error;
  return error;
}

int fail_by_exception(const char* caller, int illegal) noexcept {
  try {
    throw;
  } catch (const std::invalid_argument& e) {
    return fail(EINVAL, caller, e.what());
  } catch (const std::bad_alloc&) {
    return fail(ENOMEM, caller, "out of memory");
  } catch (const IllegalState& e) {
    return fail(illegal, caller, without_function(e.what()));
  } catch (const std::exception& e) {  // std::system_error: no thread, or no pthread key
    return fail(EAGAIN, caller, e.what());
  }
}

void fail_by_refusal(detail::Scheduled refused, const char* caller) noexcept {
  refused_caller = caller;
  latest_refusal = refused;
  errno = error_of(refused.result());
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
