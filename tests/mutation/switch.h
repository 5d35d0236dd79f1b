#pragma once

// What every file of the mutated library includes first: whether the fault with this number is switched on.

namespace hwt_mutation {

extern int active;              // 0: none
extern unsigned char* reached;  // a byte for each number

inline bool on_at_run_time(int number) noexcept {
  if (reached[number] == 0) reached[number] = 1;
  return active == number;
}

/// Never where the compiler computes: a constant has to be the same in all programs.
constexpr bool on(int number) noexcept { return !__builtin_is_constant_evaluated() && on_at_run_time(number); }

}  // namespace hwt_mutation

#define HWT_MUTANT(number) ::hwt_mutation::on(number)
