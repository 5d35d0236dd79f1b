#pragma once

#include <utility>

#include "tests/support/test_support.h"

namespace hwt::test {

/// The fate of one task. The flags are not atomic, so that ThreadSanitizer reports a reader that has not waited.
enum class In { Nothing, Run, Destructor };
struct Story {
  explicit Story(In held_in = In::Nothing) : held(held_in) {}

  const In held;
  Hold hold;
  bool ran = false;        // to its end
  bool destroyed = false;  // to its end
};

/// A callable that holds its thread where its story says.
class Actor {
 public:
  explicit Actor(Story& story) : story_(&story) {}
  Actor(Actor&& other) noexcept : story_(std::exchange(other.story_, nullptr)) {}
  Actor& operator=(Actor&&) = delete;
  ~Actor() {
    if (story_ == nullptr) return;
    if (story_->held == In::Destructor) story_->hold();
    story_->destroyed = true;
  }

  void operator()() {
    if (story_->held == In::Run) story_->hold();
    story_->ran = true;
  }

 private:
  Story* story_;
};

}  // namespace hwt::test
