#pragma once

#include <atomic>

namespace hwt::internal {

/// Counts a live timer, and warns once per process when there are more than 64. Netty: INSTANCE_COUNT_LIMIT.
class LiveInstance {
 public:
  LiveInstance() noexcept;
  ~LiveInstance() { release(); }
  LiveInstance(const LiveInstance&) = delete;
  LiveInstance& operator=(const LiveInstance&) = delete;
  void release() noexcept;

 private:
  std::atomic<bool> counted_{true};
};

}  // namespace hwt::internal
