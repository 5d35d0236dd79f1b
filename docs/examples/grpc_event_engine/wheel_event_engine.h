#pragma once

#include <grpc/event_engine/event_engine.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "hashed_wheel_timer/timer.h"

namespace engine {

using grpc_event_engine::experimental::EndpointConfig;
using grpc_event_engine::experimental::EventEngine;
using grpc_event_engine::experimental::MemoryAllocator;
using grpc_event_engine::experimental::MemoryAllocatorFactory;

/// An EventEngine of gRPC with its timers on a wheel. The handle that RunAfter() returns is a TimeoutId. Another engine
/// does the rest and runs the closures.
///
///   grpc_init();
///   std::shared_ptr<EventEngine> rest = CreateEventEngine();  // first, because afterwards it calls the factory
///   SetEventEngineFactory([rest] {
///     return std::make_unique<WheelEventEngine>(std::make_shared<hwt::HashedWheelTimer>(1ms), rest);
///   });
///
/// Guarantees: those of EventEngine. Cancel() returns true if this call has cancelled the closure, which then never
/// runs. It has then destroyed a Job; a Closure still belongs to the caller. The destructor stops the timer, and so
/// destroys pending Jobs without running them.
/// Threads: any thread may call any member, also in a closure. The destructor must not race other calls, and must not
/// run on the timer's worker. Closures run on threads of the other engine, so a blocking closure does not delay the
/// timer.
/// Not for: a timer that other code uses too, because the engine stops it; a timer with max_pending_timeouts.
/// RunAfter() throws what Timer::add() throws, and gRPC does not handle that.
class WheelEventEngine final : public EventEngine {
 public:
  using Job = absl::AnyInvocable<void()>;

  WheelEventEngine(std::shared_ptr<hwt::Timer> timer, std::shared_ptr<EventEngine> rest)
      : timer_(std::move(timer)), rest_(std::move(rest)) {}
  ~WheelEventEngine() override { timer_->stop(); }

  TaskHandle RunAfter(Duration when, Closure* closure) override {
    return handle_of(timer_->add([this, closure] { rest_->Run(closure); }, when));
  }
  TaskHandle RunAfter(Duration when, Job closure) override {
    // A Job does not fit into the timer's node, but a pointer does.
    auto job = std::make_unique<Job>(std::move(closure));
    return handle_of(timer_->add([this, job = std::move(job)] { rest_->Run(std::move(*job)); }, when));
  }
  bool Cancel(TaskHandle handle) override {
    const std::uint64_t high = static_cast<std::uint64_t>(handle.keys[1]) << 32;
    const auto id = hwt::TimeoutId::from_value(high | static_cast<std::uintptr_t>(handle.keys[0]));
    return timer_->cancel(id) == hwt::CancelResult::Cancelled;
  }

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
  /// Stores half of the id in each key, because a key has 32 bits on some systems.
  static TaskHandle handle_of(hwt::TimeoutId id) {
    return {{static_cast<std::intptr_t>(id.value() & 0xffffffff), static_cast<std::intptr_t>(id.value() >> 32)}};
  }

  const std::shared_ptr<hwt::Timer> timer_;
  const std::shared_ptr<EventEngine> rest_;
};

}  // namespace engine
