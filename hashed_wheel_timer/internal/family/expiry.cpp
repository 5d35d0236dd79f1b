// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/detail/keyed/expiry.h"

#include <random>

#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/platform/waiting.h"
#include "hashed_wheel_timer/internal/report/refuse.h"

namespace hwt::detail {

KeyedExpiry::~KeyedExpiry() = default;

namespace {

/// The task of a timeout. It fits into a node.
class Expire {
 public:
  Expire(KeyedExpiry& expiry, KeyedRecord& record, std::uint32_t arming) noexcept
      : expiry_(&expiry), record_(&record), arming_(arming) {
    expiry.add_reference();
  }
  Expire(Expire&& other) noexcept
      : expiry_(std::exchange(other.expiry_, nullptr)), record_(other.record_), arming_(other.arming_) {}
  Expire& operator=(Expire&&) = delete;
  ~Expire() {
    if (expiry_ == nullptr) return;
    if (record_->drop_reference()) expiry_->free(*record_);
    expiry_->drop_reference();
  }

  void operator()() { expiry_->expire(*record_, arming_); }

 private:
  KeyedExpiry* expiry_;
  KeyedRecord* record_;
  std::uint32_t arming_;
};
static_assert(kFitsNode<Expire>);

}  // namespace

// Defined in the library, because a program that includes the header may be compiled without exceptions.
Result arm(Timer& timer, KeyedExpiry& expiry, KeyedRecord& record, std::uint32_t arming, When when, Timeout& timeout) {
  Expire task(expiry, record, arming);
  const Scheduled scheduled = schedule_named(timer, source_of<Expire>(task), when, "hwt::KeyedTimer");
  const Result result = scheduled.result();
  if (result != Result::Ok && result != Result::Stopped && result != Result::Full) raise(scheduled);
  timeout = internal::Node::adopt(scheduled.node);
  return result;
}

void refuse_empty_on_expire() { internal::refuse("KeyedTimer: on_expire", "null", "a callable"); }

HashSeed HashSeed::random() noexcept {
  try {
    std::random_device source;
    const auto word = [&source] { return std::uint64_t{source()} << 32 | source(); };
    return {word(), word() | 1};
  } catch (...) {
    // An address and the time can be guessed, but they differ between runs.
    const int anything = 0;
    const auto here = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&anything));
    const auto now = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    return {here + now, (now * 0x9e3779b97f4a7c15 ^ here) | 1};
  }
}

namespace {

// The innermost running call on this thread. outer_ links it to the calls around it.
constinit thread_local const RunningExpiries::Scope* innermost = nullptr;

}  // namespace

// relaxed: this call counts itself, then claims a value, and erases its cell under the lock of the shard. A waiting
// thread locks each shard and tries to claim every value, and then reads the count. The lock or the claim makes this
// call visible to that thread.
RunningExpiries::Scope::Scope(RunningExpiries& all) noexcept : all_(all), outer_(std::exchange(innermost, this)) {
  all_.count_.fetch_add(1, std::memory_order_relaxed);
}

// release: pairs with the acquire of a waiting thread, which then destroys objects that the call used.
RunningExpiries::Scope::~Scope() {
  innermost = outer_;
  all_.count_.fetch_sub(1, std::memory_order_release);
  internal::announce_change(all_.count_);
}

bool RunningExpiries::Scope::outermost() const noexcept {
  for (const Scope* scope = outer_; scope != nullptr; scope = scope->outer_) {
    if (&scope->all_ == &all_) return false;
  }
  return true;
}

bool RunningExpiries::wait_for_others() noexcept {
  std::uint32_t own = 0;
  for (const Scope* scope = innermost; scope != nullptr; scope = scope->outer_) own += &scope->all_ == this ? 1 : 0;
  for (;;) {
    const std::uint32_t count = count_.load(std::memory_order_acquire);
    if (count == own) return own == 0;
    internal::await_change(count_, count);
  }
}

}  // namespace hwt::detail
