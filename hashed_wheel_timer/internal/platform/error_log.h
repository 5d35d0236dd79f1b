#pragma once

#include <exception>

#include "hashed_wheel_timer/internal/platform/line_per_second.h"

namespace hwt::internal {

/// The default for Options::on_task_error: at most one line per second, which counts those it left out. Any thread.
class ErrorLog {
 public:
  /// `origin` names what threw: "a task".
  void report(const std::exception_ptr& error, const char* origin) noexcept;

 private:
  LinePerSecond lines_;
};

}  // namespace hwt::internal
