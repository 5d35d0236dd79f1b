#pragma once

// NOLINTBEGIN(bugprone-reserved-identifier): GenMC's own names
extern "C" {
void __VERIFIER_loop_begin() noexcept;
void __VERIFIER_spin_start() noexcept;
void __VERIFIER_spin_end(bool) noexcept;
}
// NOLINTEND(bugprone-reserved-identifier)

namespace model {

/// GenMC makes a run for each value that done() may find, and one more in which the thread waits for ever. That is an
/// error only if no thread can make it true.
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
