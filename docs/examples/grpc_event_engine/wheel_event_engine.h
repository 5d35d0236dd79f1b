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

/// An EventEngine of gRPC whose timers are on a wheel: RunAfter() and Cancel() by a KeyedTimer, all else, running what
/// is due included, by another engine.
///
///   grpc_init();
///   std::shared_ptr<EventEngine> rest = CreateEventEngine();  // before the factory is set, or it would call itself
///   SetEventEngineFactory([timer, rest] { return std::make_unique<WheelEventEngine>(timer, rest); });
///
/// Guarantees: those of EventEngine. Cancel() is true if and only if the closure has not run and never will; the
/// closure has been destroyed then. What is left when this goes is destroyed and does not run.
/// Threads: any may call any member but the destructor, closures included. Closures run on the threads of the other
/// engine: one that blocks does not hold up the timer.
/// Not for: a timer that has a limit or that somebody stops. gRPC cannot be told of a refusal, which is thrown.
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
  // Of all engines, so that none takes the handle of another for its own. Never 0 or -1, which stand for no handle.
  static inline std::atomic<std::intptr_t> next_id_{1};

  const std::shared_ptr<hwt::Timer> timer_;
  const std::shared_ptr<EventEngine> rest_;
  hwt::KeyedTimer<std::intptr_t, Job> waiting_;  // last: it goes first, and waits for what it is handing on
};

}  // namespace engine
