#include "tests/arithmetic/proof.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace hwt::arithmetic {
namespace {

// The most steps of the solver for one question, which take some seconds. The hardest question takes about a million.
// This is no limit in time, because the threads that measure time in z3 4.8 may deadlock.
constexpr unsigned kStepLimit = 100'000'000;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// By far the fastest for bits alone.
z3::solver bit_solver() {
  z3::context& context = solver_context();
  return (z3::tactic(context, "simplify") & z3::tactic(context, "solve-eqs") & z3::tactic(context, "bit-blast") &
          z3::tactic(context, "sat"))
      .mk_solver();
}

/// A sum of products of symbols. Then products that have a symbol in common are compared without more multiplication.
z3::expr multiplied_out(const z3::expr& product) {
  z3::params how(solver_context());
  how.set("som", true);
  return product.simplify(how);
}

}  // namespace

z3::context& solver_context() {
  static z3::context context;
  return context;
}

Path& Path::present() {
  static Path path;
  return path;
}

z3::check_result Path::check(const z3::expr& condition, bool multiplies, std::string* counterexample) {
  // A simple solver tries no tactics for products first, which take minutes.
  z3::solver solver = only_bits_ ? bit_solver() : z3::solver(solver_context(), z3::solver::simple());
  z3::params limit(solver_context());
  limit.set("rlimit", kStepLimit);
  solver.set(limit);
  for (const z3::expr& assumption : assumptions_) solver.add(assumption);
  solver.add(condition);
  for (const Product& seen : products_)
    if (multiplies) solver.add(seen.value == multiplied_out(seen.a * seen.b));
  const z3::check_result result = solver.check();
  if (result == z3::sat && counterexample != nullptr) {
    const z3::model model = solver.get_model();
    *counterexample += chosen_;
    for (const z3::expr& name : named_) {
      const z3::expr value = model.eval(name, true);
      *counterexample +=
          " " + name.to_string() + "=" + (value.is_bv() ? value.get_decimal_string(0) : value.to_string());
    }
  }
  return result;
}

bool Path::decide(const z3::expr& condition) {
  const z3::expr simple = condition.simplify();
  if (simple.is_true()) return true;
  if (simple.is_false()) return false;
  if (at_ == choices_.size()) {
    const bool may_fail = check(!simple, false) != z3::unsat;
    const bool may_hold = !may_fail || check(simple, false) != z3::unsat;
    choices_.push_back({may_fail ? 0 : 1, may_hold ? 1 : 0});
  }
  const bool value = choices_[at_++].value != 0;
  assume(value ? simple : !simple);
  return value;
}

int Path::each(const std::string& name, int least, int most) {
  if (at_ == choices_.size()) choices_.push_back({least, most});
  const int value = choices_[at_++].value;
  chosen_ += " " + name + "=" + std::to_string(value);
  return value;
}

void Path::require(const z3::expr& condition, const char* what) {
  if (at_ < choices_.size()) return;  // still as on an earlier path
  const z3::expr simple = condition.simplify();
  if (simple.is_true()) return;
  std::string counterexample;
  if (!products_.empty() && check(!simple, false) == z3::unsat) return;
  switch (check(!simple, true, &counterexample)) {
    case z3::unsat:
      return;
    case z3::sat:
      report("REFUTED", std::string(what) + ":" + counterexample);
      std::exit(1);
    case z3::unknown:
      report("UNDECIDED", what);
      std::exit(1);
  }
}

z3::expr Path::symbol(const std::string& name, const z3::sort& sort) {
  const std::string full = name.empty() ? "#" + std::to_string(symbols_++) : name;
  const z3::expr made = solver_context().constant(full.c_str(), sort);
  only_bits_ = only_bits_ && sort.is_bv();
  if (!name.empty()) named_.push_back(made);
  return made;
}

z3::expr Path::product(const z3::expr& a, const z3::expr& b) {
  if (b.is_numeral()) return a * b;
  const z3::expr value = a.is_numeral() ? a * b : symbol("", solver_context().int_sort());
  assume(value >= 0 && z3::implies(b >= 1, value >= a) && z3::implies(a >= 1, value >= b));
  for (const Product& seen : products_) {
    if (!z3::eq(seen.b, b)) continue;
    assume(z3::implies(a > seen.a, value >= seen.value + b));
    assume(z3::implies(a >= seen.a - 1, value >= seen.value - b));
    assume(z3::implies(a < seen.a, value <= seen.value - b));
    assume(z3::implies(a <= seen.a + 1, value <= seen.value + b));
    assume(z3::implies(a == seen.a, value == seen.value));
  }
  products_.push_back({a, b, value});
  return value;
}

void Path::begin() {
  at_ = 0;
  symbols_ = 0;
  assumptions_.clear();
  named_.clear();
  chosen_.clear();
  only_bits_ = true;
  products_.clear();
}

bool Path::next() {
  ++paths_;
  any_possible_ = any_possible_ || check(solver_context().bool_val(true), true) == z3::sat;
  while (!choices_.empty() && choices_.back().value == choices_.back().last) choices_.pop_back();
  if (choices_.empty()) return false;
  ++choices_.back().value;
  return true;
}

bool Path::begin_lemma(const std::string& name, const std::vector<std::string>& chosen) {
  if (!chosen.empty() && std::find(chosen.begin(), chosen.end(), name) == chosen.end()) return false;
  lemma_ = name;
  begun_ = now();
  paths_ = 0;
  any_possible_ = false;
  choices_.clear();
  return true;
}

void Path::end_lemma() {
  if (!any_possible_) {
    report("REFUTED", "nothing fulfils its assumptions");
    std::exit(1);
  }
  report("proven", "");
}

void Path::report(const char* result, const std::string& why) const {
  std::printf("%s: %s (%d paths, %.1f s) %s\n", lemma_.c_str(), result, paths_, now() - begun_, why.c_str());
  std::fflush(stdout);
}

}  // namespace hwt::arithmetic
