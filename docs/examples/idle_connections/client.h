#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "options.h"

namespace idle {

/// Opens the connections, on a thread of its own, and sends a byte on each again and again: on the active ones until
/// the end, on each of the others until a random moment.
class Client {
 public:
  /// `on_failure` is called on the client's thread when it cannot go on.
  Client(const Options& options, std::uint16_t port, std::function<void()> on_failure);
  ~Client();

  /// Ends the thread. Throws what has made it fail.
  void stop();

  /// After stop(): the longest that an active connection was silent. More than the limit if this thread was held up.
  std::chrono::nanoseconds longest_silence() const { return longest_silence_; }

 private:
  class Sender;

  void run(const std::stop_token& stop);

  const Options options_;
  const std::uint16_t port_;
  const std::function<void()> on_failure_;
  std::exception_ptr failure_;
  std::chrono::nanoseconds longest_silence_{0};
  std::jthread thread_;  // last: it uses the rest
};

}  // namespace idle
