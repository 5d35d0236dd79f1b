#pragma once

#include "tests/support/test_support.h"

namespace hwt::test {

/// The part of a callable that holds its thread.
enum class In { Nothing, Run, Destructor };

/// The fate of one callable. The counts are not atomic, so that ThreadSanitizer reports a reader that has not waited.
struct Story {
  explicit Story(In held_in = In::Nothing) : held(held_in) {}

  const In held;
  Hold hold;
  int ran = 0;        // how many runs have ended
  int destroyed = 0;  // how many destructors have ended
};

/// A callable with a story, which says where it holds its thread.
class Actor {
 public:
  explicit Actor(Story& story) : story_(&story) {}
  Actor(Actor&& other) noexcept : story_(std::exchange(other.story_, nullptr)) {}
  Actor& operator=(Actor&&) = delete;
  ~Actor() {
    if (story_ == nullptr) return;
    if (story_->held == In::Destructor) story_->hold();
    ++story_->destroyed;
  }

  void operator()() {
    if (story_->held == In::Run) story_->hold();
    ++story_->ran;
  }

 private:
  Story* story_;
};

}  // namespace hwt::test
