#pragma once

#include <grpc/event_engine/event_engine.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

#include "hashed_wheel_timer/keyed_timer.h"

namespace engine {

using grpc_event_engine::experimental::EndpointConfig;
using grpc_event_engine::experimental::EventEngine;
using grpc_event_engine::experimental::MemoryAllocator;
using grpc_event_engine::experimental::MemoryAllocatorFactory;

/// An EventEngine of gRPC with its timers on a wheel: a KeyedTimer has RunAfter() and Cancel(). Another engine does the
/// rest and runs the closures.
///
///   grpc_init();
///   std::shared_ptr<EventEngine> rest = CreateEventEngine();  // before the factory is set, or it would call itself
///   SetEventEngineFactory([timer, rest] { return std::make_unique<WheelEventEngine>(timer, rest); });
///
/// Guarantees: those of EventEngine. Cancel() returns true if and only if the closure has not run and never will; it
/// has then destroyed the closure. The destructor destroys pending closures without running them.
/// Threads: any thread may call any member except the destructor, also from a closure. Closures run on threads of the
/// other engine, so a blocking closure does not delay the timer.
/// Not for: a timer with a limit, or a timer that is stopped earlier. RunAfter() then throws, and gRPC does not handle
/// that.
class WheelEventEngine final : public EventEngine {
 public:
  using Job = absl::AnyInvocable<void()>;

  WheelEventEngine(std::shared_ptr<hwt::Timer> timer, std::shared_ptr<EventEngine> rest)
      : timer_(std::move(timer)),
        rest_(std::move(rest)),
        waiting_(*timer_, [this](std::intptr_t, Job& job) { rest_->Run(std::move(job)); }) {}

  TaskHandle RunAfter(Duration when, Closure* closure) override {
    return RunAfter(when, [closure] { closure->Run(); });
  }
  TaskHandle RunAfter(Duration when, Job closure) override {
    const std::intptr_t id = next_id_.fetch_add(1, std::memory_order_relaxed);
    if (waiting_.set(id, std::move(closure), when) != hwt::KeyedResult::Added) {
      throw std::runtime_error("RunAfter: refused by the timer, which has been stopped or is at its limit");
    }
    return {{id, 0}};
  }
  bool Cancel(TaskHandle handle) override { return waiting_.remove(handle.keys[0]).has_value(); }

  void Run(Closure* closure) override { rest_->Run(closure); }
  void Run(Job closure) override { rest_->Run(std::move(closure)); }
  bool IsWorkerThread() override { return rest_->IsWorkerThread(); }
  absl::StatusOr<std::unique_ptr<Listener>> CreateListener(
      Listener::AcceptCallback on_accept, absl::AnyInvocable<void(absl::Status)> on_shutdown,
      const EndpointConfig& config, std::unique_ptr<MemoryAllocatorFactory> allocators) override {
    return rest_->CreateListener(std::move(on_accept), std::move(on_shutdown), config, std::move(allocators));
  }
  ConnectionHandle Connect(OnConnectCallback on_connect, const ResolvedAddress& address, const EndpointConfig& config,
                           MemoryAllocator allocator, Duration timeout) override {
    return rest_->Connect(std::move(on_connect), address, config, std::move(allocator), timeout);
  }
  bool CancelConnect(ConnectionHandle handle) override { return rest_->CancelConnect(handle); }
  std::unique_ptr<DNSResolver> GetDNSResolver(const DNSResolver::ResolverOptions& options) override {
    return rest_->GetDNSResolver(options);
  }

 private:
  // Shared by all engines, so that no engine accepts the handle of another. Never 0 or -1, which mean no handle.
  static inline std::atomic<std::intptr_t> next_id_{1};

  const std::shared_ptr<hwt::Timer> timer_;
  const std::shared_ptr<EventEngine> rest_;
  hwt::KeyedTimer<std::intptr_t, Job> waiting_;  // last: its destructor waits for expiries that use the other members
};

}  // namespace engine
