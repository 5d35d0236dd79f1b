#include "hashed_wheel_timer/keyed_expiry.h"

#include <stdexcept>
#include <utility>

namespace hwt::detail {

KeyedExpiry::~KeyedExpiry() = default;

// Here, and not in the template: there are users who compile without exceptions.
Armed arm(Timer& timer, std::shared_ptr<KeyedExpiry> expiry, std::uint32_t hash, std::chrono::nanoseconds delay,
          Timeout& timeout) {
  auto task = [expiry = std::move(expiry), hash](Timeout& self) { expiry->expire(hash, self); };
  try {
    timeout = timer.new_timeout(std::move(task), delay);
    return Armed::Yes;
  } catch (const IllegalState&) {
    return Armed::Stopped;
  } catch (const RejectedExecution&) {
    return Armed::Rejected;
  }
}

void refuse_empty_on_expire() { throw std::invalid_argument("on_expire: empty (expected: a callable)"); }

RunningExpiries::Scope::Scope(RunningExpiries& all) noexcept : all_(all) {
  const std::lock_guard lock(all_.mutex_);
  next_ = std::exchange(all_.first_, this);
}

RunningExpiries::Scope::~Scope() {
  const std::lock_guard lock(all_.mutex_);
  Scope** link = &all_.first_;
  while (*link != this) link = &(*link)->next_;
  *link = next_;
  all_.left_.notify_all();
}

bool RunningExpiries::others() const noexcept {
  const std::thread::id self = std::this_thread::get_id();
  for (const Scope* scope = first_; scope != nullptr; scope = scope->next_) {
    if (scope->thread_ != self) return true;
  }
  return false;
}

bool RunningExpiries::wait_for_others() noexcept {
  std::unique_lock lock(mutex_);
  left_.wait(lock, [this] { return !others(); });
  return first_ == nullptr;
}

}  // namespace hwt::detail
