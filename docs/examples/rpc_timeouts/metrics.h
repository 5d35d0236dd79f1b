#pragma once

#include <charconv>

#include "common/common.h"
#include "common/standalone_asio.h"
#include "hashed_wheel_timer/hashed_wheel_timer.h"

#if defined(HAS_PROMETHEUS)
#include <prometheus/exposer.h>

#include "hashed_wheel_timer/prometheus.h"
#endif

namespace rpc {

/// Serves the timer's metrics for Prometheus at http://127.0.0.1:PORT/metrics, on its own thread.
class Metrics {
 public:
  /// Parses the port of --metrics. Throws BadArgument.
  static std::uint16_t port_of(const std::string& text) {
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (error != std::errc() || end != text.data() + text.size() || port == 0) {
      common::Options::refuse("--metrics", text, "a port, 1 .. 65535");
    }
    return port;
  }

  /// The timer must outlive this object. Throws BadArgument if the port cannot be used.
  Metrics(const hwt::HashedWheelTimer& timer, std::uint16_t port) {
#if defined(HAS_PROMETHEUS)
    const std::string address = "127.0.0.1:" + std::to_string(port);
    expect_free(address, port);
    try {
      exposer_ = std::make_unique<prometheus::Exposer>(address, 1);
    } catch (const std::exception& error) {
      refuse(address, error.what());
    }
    exposer_->RegisterCollectable(collector_ = std::make_shared<Collector>(timer));
#else
    static_cast<void>(timer);
    static_cast<void>(port);
    throw common::BadArgument("--metrics: this program was built without prometheus-cpp");
#endif
  }

 private:
#if defined(HAS_PROMETHEUS)
  using Collector = hwt::prometheus::TimerCollector<>;

  /// Finds the reason, which the exposer does not report.
  static void expect_free(const std::string& address, std::uint16_t port) {
    asio::io_context io;
    try {
      const asio::ip::tcp::acceptor tried(io, {asio::ip::address_v4::loopback(), port});
    } catch (const std::system_error& error) {
      refuse(address, error.code().message());
    }
  }

  [[noreturn]] static void refuse(const std::string& address, const std::string& why) {
    throw common::BadArgument("--metrics: cannot listen on " + address + ": " + why);
  }

  std::shared_ptr<Collector> collector_;
  std::unique_ptr<prometheus::Exposer> exposer_;  // destroyed before the collector
#endif
};

}  // namespace rpc
