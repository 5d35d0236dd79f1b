// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "hashed_wheel_timer/detail/task.h"
#include "hashed_wheel_timer/internal/platform/waiting.h"
#include "hashed_wheel_timer/timeout.h"

namespace hwt::internal {

/// The thread that may act for a RepeatedTimer or a schedule (the conductor), and the requested state. Both are in one
/// word, so that the worker needs no lock when an expiry comes.
///
/// One thread at a time is the conductor. It alone arms, which is to schedule the timeout of the next trigger, and runs
/// hooks: the user's functions (RepeatedTimer::Hooks), or the job of a schedule. It is either in a hook or at work:
///
///   from     to       by
///   nobody   at work  a call of a user: enter(), or enter_first() or destroy() of a schedule
///   nobody   at work  the timeout that was armed last: enter_expired()
///   at work  in hook  the conductor, before each hook: begin_hook()
///   in hook  at work  the conductor, after each hook: end_hook()
///   at work  nobody   the conductor: leave()
///
/// A call that finds a hook running notes its request in the word, and the conductor meets it after the hook. A call
/// that finds the conductor at work waits for it, because the conductor may have read the word already. The wait lasts
/// some instructions and one call of the Timer, and longer if that thread is preempted. But destroy() does not wait.
/// The conductor of a schedule finds that request in begin_hook() or leave().
///
/// The worker waits for neither. An expiry that finds a conductor leaves a mark and returns. Most often the conductor
/// is about to replace that timeout. But it may be the timeout that the conductor has just armed, if that thread was
/// preempted for the whole delay. So a conductor that finds the mark in leave() checks the timeout that it has armed.
/// If that timeout has expired, a conductor in the task of a schedule makes the run itself. Any other conductor arms a
/// new timeout, which expires at once, because a call of a user must run no trigger. So a thread that is preempted in
/// a call delays only this object.
///
/// If the timer stops, stop() or the destructor tells the armed task so, and that notes it in the word (kTimerEnded).
/// So a call that asks whether there will be a trigger reads only the word. The note is for good, because a Timer does
/// not start again. A task that stop() returned may still run by hand, and does not clear it.
///
/// Orders: the conductor owns all of the object that is not atomic. The next one gets it by the release of leave()
/// and its acquire on entering. A note is a release, and end_hook() an acquire, so the conductor sees everything that
/// was stored before the note. The release of end_hook() is for destroy(): if that finds no hook, its caller sees the
/// end of the latest one. A mark is a release, and leave() an acquire: the conductor sees that the timeout has expired.
/// Every change of the word is a read-modify-write, so later changes continue these release sequences.
class Conductor {
 public:
  using Word = std::uint64_t;

  // The requested state.
  static constexpr Word kStopped = 1;
  static constexpr Word kDestroyed = 2;  // for good
  // The present state.
  static constexpr Word kConducted = 4;
  static constexpr Word kInHook = 8;       // never without a conductor
  static constexpr Word kTriggering = 16;  // that hook is on_trigger
  static constexpr Word kArmed = 32;
  static constexpr Word kExpired = 64;      // the mark
  static constexpr Word kTimerEnded = 128;  // the Timer's end has cancelled the armed timeout; for good
  // The higher bits are the number of the armed timeout, or of the next one.
  static constexpr Word kArming = 256;

  static Word arming_of(Word word) noexcept { return word / kArming; }

  explicit Conductor(Word word = kStopped) noexcept : word_(word) {}

  /// acquire: a thread that finds the object destroyed sees the end of its last hook.
  Word word() const noexcept { return word_.load(std::memory_order_acquire); }

  /// Enters a call of the user, and changes the word to note(word). Returns the word before if this thread has become
  /// the conductor, which must call leave(). Returns nothing if the conductor will meet the request after its hook, or
  /// if the object was destroyed before.
  template <class Note>
  std::optional<Word> enter(Note note) noexcept {
    Word before = word();
    for (;;) {
      if ((before & kDestroyed) != 0) return std::nullopt;
      const bool conducted = (before & kConducted) != 0;
      if (conducted && (before & kInHook) == 0) {
        await_change(word_, before);
        before = word();
      } else if (word_.compare_exchange_weak(before, note(before) | kConducted, std::memory_order_acq_rel,
                                             std::memory_order_acquire)) {
        if (conducted) return std::nullopt;
        return before;
      }
    }
  }

  /// For an object that was made with the word 0. If no call and no expiry has changed the word yet, this thread
  /// becomes the conductor. Returns whether it has. Does not wait.
  bool enter_first() noexcept {
    Word none = 0;
    return word_.compare_exchange_strong(none, kConducted, std::memory_order_relaxed);
  }

  /// Ends the object for good, and returns the word before. If that has neither kConducted nor kDestroyed, this thread
  /// is the conductor, and never leaves. Does not wait.
  Word destroy() noexcept { return word_.fetch_or(kDestroyed | kConducted, std::memory_order_acq_rel); }

  /// Called when the Timer's end has cancelled a timeout of this object.
  void note_timer_ended() noexcept { word_.fetch_or(kTimerEnded, std::memory_order_relaxed); }

  /// Called when the timeout of this number has expired. If it returns true, this thread is the conductor. Never waits.
  bool enter_expired(Word arming) noexcept {
    Word seen = word();
    for (;;) {
      if (arming_of(seen) != arming) return false;  // out of date
      const bool conducted = (seen & kConducted) != 0;
      const Word entered = ((seen | kConducted) & ~kArmed) + kArming;
      // Makes the exchange even if the mark is set, so that the conductor sees this expiry too.
      if (word_.compare_exchange_weak(seen, conducted ? seen | kExpired : entered, std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
        return !conducted;
      }
    }
  }

  // Called by the conductor.

  bool wanted() const noexcept { return (word_.load(std::memory_order_relaxed) & (kStopped | kDestroyed)) == 0; }
  bool destroyed() const noexcept { return (word_.load(std::memory_order_relaxed) & kDestroyed) != 0; }
  Word arming() const noexcept { return arming_of(word_.load(std::memory_order_relaxed)); }

  /// Returns false if a call has destroyed the object before. `kind`: kTriggering or 0.
  bool begin_hook(Word kind) noexcept {
    thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    const Word before = word_.fetch_or(kInHook | kind, std::memory_order_relaxed);
    announce_change(word_);  // a waiting call may note its request now
    return (before & kDestroyed) == 0;
  }
  void end_hook() noexcept {
    thread_.store({}, std::memory_order_relaxed);
    word_.fetch_and(~(kInHook | kTriggering), std::memory_order_acq_rel);
  }

  void set_armed() noexcept { word_.fetch_or(kArmed, std::memory_order_relaxed); }
  /// Makes an armed timeout out of date.
  void set_disarmed() noexcept {
    word_.fetch_and(~kArmed, std::memory_order_relaxed);
    word_.fetch_add(kArming, std::memory_order_relaxed);
  }

  /// Ceases to be the conductor, unless the word has one of these bits: by default, the mark of an expiry. If it
  /// returns false, it has cleared the mark. Then the caller deals with an armed timeout that has expired, and calls
  /// this again.
  bool leave(Word unless = kExpired) noexcept {
    Word seen = word_.load(std::memory_order_relaxed);
    for (;;) {
      const bool stays = (seen & unless) != 0;
      const Word left = stays ? seen & ~kExpired : seen & ~kConducted;
      if (!word_.compare_exchange_weak(seen, left, std::memory_order_acq_rel, std::memory_order_relaxed)) continue;
      if (stays) return false;
      announce_change(word_);
      return true;
    }
  }

  /// Returns whether this thread is the conductor, in a hook.
  bool is_here() const noexcept {
    // Only this thread writes its own id here, and it clears it after the hook: relaxed.
    return thread_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

  /// Returns when there is no conductor, or when it is this thread.
  void wait_for_other() const noexcept {
    if (is_here()) return;
    for (Word seen = word(); (seen & kConducted) != 0; seen = word()) await_change(word_, seen);
  }

 private:
  std::atomic<Word> word_;
  std::atomic<std::thread::id> thread_{};  // of the conductor, in a hook
};

/// The task of the timeout that a conductor arms. `Owner` has the Conductor.
template <class Owner>
class ArmedTask {
 public:
  ArmedTask(std::shared_ptr<Owner> owner, Conductor& conductor) noexcept
      : owner_(std::move(owner)), conductor_(&conductor), arming_(conductor.arming()) {}

  void operator()(Timeout& expired) {
    if (conductor_->enter_expired(arming_)) owner_->conduct_expired(expired);
  }
  void will_not_run(detail::NotRun why) noexcept {
    if (why == detail::NotRun::Stopped) conductor_->note_timer_ended();
  }

 private:
  std::shared_ptr<Owner> owner_;
  Conductor* conductor_;  // of owner_
  Conductor::Word arming_;
};

}  // namespace hwt::internal
