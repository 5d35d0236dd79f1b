#pragma once

// Included first by every C++ file of the mutated build. Tells whether a fault is active, and records which places the
// program reaches.

namespace hwt_mutation {

extern int active;              // 0: none
extern unsigned char* reached;  // one byte for each place

inline bool on_at_run_time(int number) noexcept {
  if (reached[number] == 0) reached[number] = 1;
  return active == number;
}

/// Returns whether the fault is active. False in constant expressions: the compiler evaluates them, and no fault is
/// active then.
constexpr bool on(int number) noexcept { return !__builtin_is_constant_evaluated() && on_at_run_time(number); }

}  // namespace hwt_mutation

#define HWT_MUTANT(number) ::hwt_mutation::on(number)
