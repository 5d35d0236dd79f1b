#pragma once

#include <kj/async.h>
#include <kj/timer.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "hashed_wheel_timer/passive_wheel.h"

namespace kj_http {

/// A kj::Timer on a PassiveWheel, for a kj::HttpServer or anything else that takes a kj::Timer. All its promises share
/// one promise of the event loop's own timer. That timer keeps its promises in a sorted set.
///
///   auto io = kj::setupAsyncIo();
///   kj_http::WheelTimer timer(io.provider->getTimer());
///   kj::HttpServer server(timer, table, service);
///
/// Guarantees: those of kj::Timer, with a tick. A promise is never early, and resolves in the first turn of the loop at
/// or after the end of the tick of its time. Making and dropping a promise costs the same with any number of them.
/// Threads: the thread of the event loop.
/// Not for: promises that outlive the loop's timer. Those that outlive this object never resolve.
class WheelTimer final : public kj::Timer {
 public:
  /// `loop` is the timer of the event loop and must outlive this object. A promise is late by up to a tick. Throws
  /// std::invalid_argument if the tick is not positive.
  explicit WheelTimer(kj::Timer& loop, kj::Duration tick = kj::MILLISECONDS)
      : loop_(loop), wheel_(std::chrono::nanoseconds(tick / kj::NANOSECONDS), to_std(loop.now())) {}

  kj::TimePoint now() const override { return loop_.now(); }
  kj::Promise<void> atTime(kj::TimePoint time) override {
    auto promise = kj::newAdaptedPromise<void, Waiting>(wheel_, to_std(time));
    // next_wakeup() returns a time, because this promise is in the wheel.
    if (*wheel_.next_wakeup() < awake_at_) wakeup_ = wake_up().eagerlyEvaluate(nullptr);
    return promise;
  }
  kj::Promise<void> afterDelay(kj::Duration delay) override {
    const kj::Duration left = std::numeric_limits<std::int64_t>::max() * kj::NANOSECONDS - (now() - kOrigin);
    return atTime(now() + std::min(delay, left));
  }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Waiting final : hwt::WheelNode {
    Waiting(kj::PromiseFulfiller<void>& fulfiller, hwt::PassiveWheel& wheel, TimePoint time) : fulfiller_(fulfiller) {
      wheel.schedule(*this, time);
    }
    void on_timeout() override { fulfiller_.fulfill(); }

    kj::PromiseFulfiller<void>& fulfiller_;
  };

  static constexpr kj::TimePoint kOrigin = kj::origin<kj::TimePoint>();

  static TimePoint to_std(kj::TimePoint time) {
    return TimePoint(std::chrono::nanoseconds((time - kOrigin) / kj::NANOSECONDS));
  }

  /// Advances the wheel each time something is due, until the wheel is empty.
  kj::Promise<void> wake_up() {
    const auto next = wheel_.next_wakeup();
    awake_at_ = next ? *next : TimePoint::max();
    if (!next) return kj::READY_NOW;
    return loop_.atTime(kOrigin + next->time_since_epoch().count() * kj::NANOSECONDS).then([this] {
      wheel_.advance(to_std(now()));
      return wake_up();
    });
  }

  kj::Timer& loop_;
  hwt::PassiveWheel wheel_;
  TimePoint awake_at_ = TimePoint::max();
  kj::Promise<void> wakeup_ = nullptr;
};

}  // namespace kj_http
