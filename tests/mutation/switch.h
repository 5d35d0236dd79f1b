#pragma once

// Included first by every file of the mutated library. Tells whether a fault is active.

namespace hwt_mutation {

extern int active;              // 0: none
extern unsigned char* reached;  // one byte for each place

inline bool on_at_run_time(int number) noexcept {
  if (reached[number] == 0) reached[number] = 1;
  return active == number;
}

/// Returns whether the fault is active. False in constant expressions, which must be the same in all programs.
constexpr bool on(int number) noexcept { return !__builtin_is_constant_evaluated() && on_at_run_time(number); }

}  // namespace hwt_mutation

#define HWT_MUTANT(number) ::hwt_mutation::on(number)
