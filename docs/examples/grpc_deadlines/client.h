#pragma once

#include <atomic>

#include "common/common.h"
#include "common/detached.h"
#include "common/histogram.h"
#include "hashed_wheel_timer/coroutine.h"
#include "hashed_wheel_timer/jitter.h"
#include "question.h"

namespace store {

struct Load {
  int in_flight = 32;
  std::chrono::milliseconds deadline{1000};
  double hedge_at = 0.95;  // quantile of the latency
  double seconds = 10;
};

/// Times from the first attempt to the end of the call, retries included.
struct Latencies {
  common::Histogram all;
  common::Histogram answered;
  common::Histogram failed;

  void record(std::chrono::nanoseconds took, bool has_answer) {
    all.record(took);
    (has_answer ? answered : failed).record(took);
  }
};

struct Results {
  std::int64_t calls = 0;
  std::int64_t answered = 0;
  std::int64_t over_limit = 0;  // ended as DEADLINE_EXCEEDED
  std::int64_t failed = 0;      // refused in the last attempt, or ended by another error
  std::int64_t retried = 0;
  std::int64_t hedged = 0;
  std::int64_t won_by_hedge = 0;
  std::int64_t lost = 0;     // have not ended
  std::int64_t doubled = 0;  // ended a second time
  std::chrono::duration<double> load_time{0};
  std::chrono::nanoseconds hedge_after{0};  // the newest value
  Latencies plain;                          // of Get without hedging
  Latencies hedged_get;                     // of Get with hedging
  Latencies put;
};

/// Keeps calls in flight. Every other Get is hedged, so that both kinds see the same server. A Put is never hedged,
/// because it has an effect. Calls that the server refused are retried.
///
/// Each caller is a coroutine. It resumes on threads of gRPC and on the worker of the timer.
class Client {
 public:
  Client(hwt::Timer& timer, const Load& load, const std::string& address)
      : timer_(timer), load_(load), open_calls_(static_cast<std::size_t>(load.in_flight)) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // the server is local
    stub_ = Store::NewStub(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  }

  /// Makes calls until the time is over or the program is interrupted, then waits for the calls in flight.
  void run() {
    const Clock::time_point started = Clock::now();
    const std::chrono::duration<double> duration(load_.seconds);
    callers_ = load_.in_flight;
    for (std::atomic<std::uint64_t>& open_call : open_calls_) call_again_and_again(open_call);

    const Clock::time_point end = started + std::chrono::ceil<Clock::duration>(duration);
    for (Clock::time_point now = started; now < end && !common::interrupted(); now = Clock::now()) {
      show_progress(now - started);
      std::this_thread::sleep_until(std::min(now + common::kLook, end));
    }
    calling_ = false;
    const Clock::time_point stopped = Clock::now();
    while (callers_ > 0 && Clock::now() < stopped + load_.deadline + kLostAfter) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const std::lock_guard lock(mutex_);
    results_.load_time = stopped - started;
  }

  /// Precondition: run() has returned.
  Results results() const {
    const std::lock_guard lock(mutex_);
    Results results = results_;
    results.calls = calls_;
    results.lost = results.calls - results.answered - results.over_limit - results.failed;
    results.hedge_after = std::chrono::nanoseconds(hedge_after_);
    return results;
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Calls that are open for this long after the deadline count as lost.
  static constexpr std::chrono::seconds kLostAfter{30};
  // A quantile needs this many latencies, and is computed again after as many more.
  static constexpr std::int64_t kEnough = 200;
  static constexpr std::chrono::milliseconds kFirstRetryAfter{10};  // doubles with each retry
  static constexpr int kRetries = 4;

  struct Call {
    std::uint64_t id;
    Method method;
    std::optional<std::chrono::nanoseconds> hedge_after;
    int retries = 0;
    std::int64_t hedged = 0;  // of its attempts
    bool won_by_hedge = false;
  };

  /// One of five calls is a Put. Every other Get is hedged.
  Call next_call() {
    const auto id = static_cast<std::uint64_t>(++calls_);
    if (id % 5 == 0) return {id, Method::Put, std::nullopt};
    const std::chrono::nanoseconds after(hedge_after_);
    return {id, Method::Get, id % 2 == 0 && after > after.zero() ? std::optional(after) : std::nullopt};
  }

  common::Detached call_again_and_again(std::atomic<std::uint64_t>& open_call) {
    while (calling_) {
      Call call = next_call();
      open_call = call.id;
      const Clock::time_point started = Clock::now();
      const auto deadline = std::chrono::system_clock::now() + load_.deadline;
      for (;;) {
        Question question(*stub_, timer_, call.method, call.id, deadline, call.hedge_after);
        const Answer answer = co_await question;
        call.hedged += answer.hedged ? 1 : 0;
        call.won_by_hedge = answer.by_hedge;
        const std::chrono::nanoseconds took = Clock::now() - started;
        const std::chrono::nanoseconds wait = time_to_retry(call.retries);
        if (answer.status.error_code() != grpc::UNAVAILABLE || call.retries == kRetries ||
            took + wait >= load_.deadline) {
          end(open_call, call, answer.status.error_code(), took);
          break;
        }
        ++call.retries;
        co_await hwt::sleep_for(timer_, wait);
      }
    }
    --callers_;
  }

  /// Returns half to one and a half of the backoff, so that refused calls do not return together.
  static std::chrono::nanoseconds time_to_retry(int retries) {
    return hwt::jitter::around(kFirstRetryAfter * (1 << retries), 0.5);
  }

  void end(std::atomic<std::uint64_t>& open_call, const Call& call, grpc::StatusCode code,
           std::chrono::nanoseconds took) {
    const std::lock_guard lock(mutex_);
    if (open_call.exchange(0) != call.id) {
      ++results_.doubled;
      return;
    }
    results_.retried += call.retries;
    results_.hedged += call.hedged;
    if (call.won_by_hedge) ++results_.won_by_hedge;
    ++(code == grpc::OK ? results_.answered : code == grpc::DEADLINE_EXCEEDED ? results_.over_limit : results_.failed);
    Latencies& latencies = call.method == Method::Put ? results_.put
                           : call.hedge_after         ? results_.hedged_get
                                                      : results_.plain;
    latencies.record(took, code == grpc::OK);
    if (call.method == Method::Get && !call.hedge_after && call.retries == 0) measure(took);
  }

  /// Records the latency of a Get that was sent once. Precondition: mutex_ is held.
  void measure(std::chrono::nanoseconds took) {
    sent_once_.record(took);
    if (sent_once_.count() % kEnough == 0) hedge_after_ = sent_once_.quantile(load_.hedge_at).count();
  }

  void show_progress(std::chrono::duration<double> elapsed) {
    common::show_progress([&] {
      const std::lock_guard lock(mutex_);
      return common::in_seconds(elapsed) + " of " + common::in_seconds(std::chrono::duration<double>(load_.seconds)) +
             " | answered " + common::text_of(results_.answered) + " | over the limit " +
             common::text_of(results_.over_limit) + " | hedged " + common::text_of(results_.hedged) + " | retried " +
             common::text_of(results_.retried);
    });
  }

  hwt::Timer& timer_;
  const Load load_;
  std::unique_ptr<Store::Stub> stub_;
  std::vector<std::atomic<std::uint64_t>> open_calls_;  // one for each caller; 0: no open call
  std::atomic<bool> calling_{true};
  std::atomic<int> callers_{0};
  std::atomic<std::int64_t> calls_{0};
  std::atomic<std::int64_t> hedge_after_{0};  // nanoseconds; 0: unknown

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  Results results_;
  common::Histogram sent_once_;
};

}  // namespace store
