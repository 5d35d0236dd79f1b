// A coroutine that sleeps (coroutine.cpp). The thread that awaits publishes the timeout, another requests the stop, and
// the worker expires the timeout. The coroutine is resumed once. The thread that resumes it owns the frame alone. No
// thread uses the node after it was given back. A stop request always leads to a cancel(), by its own thread or by the
// thread that awaits.
//
// std::stop_callback is a model too, with the promises of the standard. Once it is destroyed, it will not be called, or
// has returned, or runs on the same thread. If it is constructed after the request, it is called at once.

#include "model.h"

namespace model {
namespace {

Weakening arm_relaxed{"arm(): release"};
Weakening request_relaxed{"request(): acquire"};
Weakening arm_blind{"arm(): a store instead of an exchange"};
Weakening request_blind{"request(): a store instead of an exchange"};
Weakening made_ignored{"await_suspend(): no cancel after a stop that was requested before arm()"};
Weakening no_reference{"stop_requested(): without a reference"};
Weakening no_handle{"await_suspend(): arms without a handle"};
Weakening frame_after{"await_suspend(): uses the frame after publication"};
Weakening callback_stays{"end(): the stop callback stays"};
Weakening refused_stays{"will_not_run(): the stop callback of a refused timeout stays"};
Weakening cancel_blind{"stop_requested(): resumes without having won"};

enum : std::uint64_t { kNone, kPending, kExpired, kCancelled, kStateMask = 3 };
constexpr std::uint64_t kReference = 4;
enum : int { kRequestNone, kMade, kArmed };                     // Waker::request_
enum : int { kUnregistered, kRegistered, kCalled, kReturned };  // Sleep::on_stop_
enum : int { kQueueEmpty, kQueued, kQueueRefused };             // the inbox
enum : unsigned { kAwaits, kRequests, kWorker };

struct Coroutine : Model<Coroutine, 3> {
  Atomic<std::uint64_t> word{kNone};
  Atomic<int> request{kRequestNone};
  Atomic<int> callback{kUnregistered};
  Atomic<int> inbox{kQueueEmpty};
  Plain<int> frame{0};
  Plain<int> node{0};       // read by threads that need it to exist
  Plain<int> sleep{0};      // Waker::sleep_
  Plain<int> published{0};  // what publish() writes besides the word, and a cancel() reads
  bool refused = false;
  bool requested = false;  // the stop callback was called; one thread has to cancel
  int resumed = 0;
  int cancels = 0;
  int given_back = 0;

  void before() { refused = rl::rand(4) == 0; }

  void thread(unsigned index) {
    if (index == kAwaits) await_suspend();
    if (index == kRequests) request_stop();
    if (index == kWorker) work();
  }

  void await_suspend() {
    frame.set(1);
    node.set(1);
    sleep.set(1);
    // build_waker(): the callback is called at once if the stop has been requested.
    int seen = kUnregistered;
    if (!callback.compare_exchange_strong(seen, kRegistered, mo_acq_rel, mo_acquire)) stop_requested(kAwaits);
    if (refused) {
      if (!refused_stays) remove_callback(kAwaits);
      give_back();
      inbox.store(kQueueRefused, mo_release);
      frame.set(2);
      ++resumed;  // by the exception
      return;
    }
    published.set(1);
    word.store(kPending + 2 * kReference, mo_release);
    inbox.store(kQueued, mo_release);
    if (frame_after) frame.get();
    if (no_handle) drop();
    node.get();
    const bool made = arm_blind ? (request.store(kArmed, mo_release), false)
                                : request.exchange(kArmed, arm_relaxed ? mo_relaxed : mo_release) == kMade;
    if (made && !made_ignored && cancel()) resume(kAwaits);
    if (!no_handle) drop();
  }

  void request_stop() {
    int seen = kUnregistered;
    // If this succeeds, the constructor of the callback will call it.
    if (callback.compare_exchange_strong(seen, kReturned, mo_acq_rel, mo_acquire)) return;
    seen = kRegistered;
    if (!callback.compare_exchange_strong(seen, kCalled, mo_acq_rel, mo_acquire)) return;
    stop_requested(kRequests);
    callback.store(kReturned, mo_release);
  }

  void stop_requested(unsigned index) {
    frame.get();  // where the waker is
    node.get();
    requested = true;
    if (request_blind) {
      const bool armed = request.load(mo_acquire) == kArmed;
      request.store(kMade, mo_release);
      if (!armed) return;
    } else if (request.exchange(kMade, request_relaxed ? mo_relaxed : mo_acquire) != kArmed) {
      return;
    }
    if (!no_reference) word.fetch_add(kReference, mo_relaxed);
    if (cancel() || cancel_blind) resume(index);
    if (!no_reference) drop();
  }

  bool cancel() {
    ++cancels;
    published.get();
    std::uint64_t seen = word.load(mo_acquire);
    MODEL_ASSERT((seen & kStateMask) != kNone);  // before publish(), a cancel would have no effect
    while ((seen & kStateMask) == kPending) {
      if (word.compare_exchange_weak(seen, seen - kPending + kCancelled, mo_acq_rel, mo_acquire)) return true;
    }
    return false;
  }

  void work() {
    while (inbox.load(mo_acquire) == kQueueEmpty) rl::yield(1, RL_INFO);
    if (inbox.load(mo_acquire) == kQueueRefused) return;
    std::uint64_t seen = word.load(mo_acquire);
    while ((seen & kStateMask) == kPending) {
      if (word.compare_exchange_weak(seen, seen - kPending + kExpired, mo_acq_rel, mo_acquire)) {
        resume(kWorker);
        break;
      }
    }
    drop();
  }

  /// end(), and then the coroutine runs to its end.
  void resume(unsigned index) {
    if (!callback_stays) remove_callback(index);
    sleep.set(2);
    frame.set(2);
    ++resumed;
  }

  /// on_stop_.reset(). Waits for a callback that runs on another thread.
  void remove_callback(unsigned index) {
    int seen = kRegistered;
    if (callback.compare_exchange_strong(seen, kReturned, mo_acq_rel, mo_acquire) || index == kRequests) return;
    while (callback.load(mo_acquire) == kCalled) rl::yield(1, RL_INFO);
  }

  void drop() {
    if ((word.fetch_sub(kReference, mo_acq_rel) & ~std::uint64_t{kStateMask}) != kReference) return;
    give_back();
  }
  void give_back() {
    ++given_back;
    node.set(2);
    sleep.set(3);
  }

  void after() {
    MODEL_ASSERT(resumed == 1);
    MODEL_ASSERT(given_back == 1);
    MODEL_ASSERT(refused || cancels == (requested ? 1 : 0));
  }
};

}  // namespace
}  // namespace model

int main() {
  using namespace model;
  return check<Coroutine>({&arm_relaxed, &request_relaxed, &arm_blind, &request_blind, &made_ignored, &no_reference,
                           &no_handle, &frame_after, &callback_stays, &refused_stays, &cancel_blind});
}
