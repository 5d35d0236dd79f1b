#pragma once

// NOLINTBEGIN(bugprone-reserved-identifier): GenMC's own names
extern "C" {
void __VERIFIER_loop_begin() noexcept;
void __VERIFIER_spin_start() noexcept;
void __VERIFIER_spin_end(bool) noexcept;
}
// NOLINTEND(bugprone-reserved-identifier)

namespace model {

/// Waits until done() is true. GenMC tries each value that done() may find, and also an execution in which the thread
/// waits for ever. It reports that execution only if no other thread can make done() true.
template <class Done>
void wait_until(Done done) noexcept {
  __VERIFIER_loop_begin();
  for (bool over = false; !over;) {
    __VERIFIER_spin_start();
    over = done();
    __VERIFIER_spin_end(over);
  }
}

}  // namespace model
