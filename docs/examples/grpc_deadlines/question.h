#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <coroutine>

#include "common/common.h"
#include "hashed_wheel_timer/timer.h"
#include "store.grpc.pb.h"

namespace store {

enum class Method { Get, Put };

struct Answer {
  grpc::Status status;
  bool hedged = false;    // a second attempt was sent
  bool by_hedge = false;  // the second attempt was answered
};

/// Asks the server; use it with co_await. With `hedge_after`, sends a second attempt after that time unless the first
/// one has ended. The first answer counts, and the other attempt is cancelled.
/// The coroutine resumes on any thread when both attempts have ended, so that none refers to its frame.
class Question {
 public:
  Question(Store::Stub& stub, hwt::Timer& timer, Method method, std::uint64_t id,
           std::chrono::system_clock::time_point deadline, std::optional<std::chrono::nanoseconds> hedge_after)
      : stub_(stub), timer_(timer), method_(method), hedge_after_(hedge_after) {
    request_.set_id(id);
    first_.context.set_deadline(deadline);
    if (!hedge_after_) return;
    second_.emplace();
    second_->context.set_deadline(deadline);
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  bool await_ready() const noexcept { return false; }

  void await_suspend(std::coroutine_handle<> asking) {
    asking_ = asking;
    if (hedge_after_) {
      open_.store(2, std::memory_order_relaxed);  // published with the timeout and the first attempt
      hedge_ = timer_.new_timeout([this] { send_second(); }, *hedge_after_);
    }
    send(first_);  // last: the coroutine may resume on another thread and destroy this object before send() returns
  }

  Answer await_resume() const {
    return {winner_ ? grpc::Status::OK : first_.status, hedged_, winner_ && winner_ != &first_};
  }

 private:
  struct Attempt {
    grpc::ClientContext context;
    Reply reply;
    grpc::Status status;
  };

  void send(Attempt& attempt) {
    auto take_status = [this, &attempt](grpc::Status status) { take(attempt, std::move(status)); };
    if (method_ == Method::Get) {
      stub_.async()->Get(&attempt.context, &request_, &attempt.reply, std::move(take_status));
    } else {
      stub_.async()->Put(&attempt.context, &request_, &attempt.reply, std::move(take_status));
    }
  }

  /// Runs on the timer's worker. If the first answer comes after the check here, take() calls TryCancel() for the
  /// second attempt. gRPC then cancels that attempt, even if it is sent later.
  void send_second() {
    if (answered_.load(std::memory_order_relaxed)) return end_one();
    hedged_ = true;
    send(*second_);
  }

  /// Runs on a thread of gRPC.
  void take(Attempt& attempt, grpc::Status status) {
    attempt.status = std::move(status);
    if (attempt.status.ok() && !answered_.exchange(true, std::memory_order_relaxed)) {
      winner_ = &attempt;
      if (second_) (&attempt == &first_ ? *second_ : first_).context.TryCancel();
    }
    // The first attempt has ended, so the second one is not sent.
    if (&attempt == &first_ && hedge_.cancel()) end_one();
    end_one();
  }

  /// Ends one attempt, sent or not. The last one sees the writes of the others (acq_rel) and resumes the coroutine.
  void end_one() {
    if (open_.fetch_sub(1, std::memory_order_acq_rel) == 1) asking_.resume();
  }

  Store::Stub& stub_;
  hwt::Timer& timer_;
  const Method method_;
  const std::optional<std::chrono::nanoseconds> hedge_after_;
  Request request_;
  Attempt first_;
  std::optional<Attempt> second_;
  std::coroutine_handle<> asking_;
  hwt::Timeout hedge_;

  std::atomic<int> open_{1};           // attempts that have not ended
  std::atomic<bool> answered_{false};  // relaxed: it publishes no other data
  // Each written by one attempt, and read when all have ended.
  const Attempt* winner_ = nullptr;
  bool hedged_ = false;
};

}  // namespace store
