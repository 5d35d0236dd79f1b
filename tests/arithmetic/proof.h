#pragma once

#include <z3++.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// A proof of shipped templates with symbolic integers. A lemma is a function that calls the shipped code. It runs once
// for each path through that code. Where the code asks for the value of a symbolic condition, the solver tells which
// values are possible. Each of them begins a path.

namespace hwt::arithmetic {

z3::context& solver_context();

/// The path of the lemma that runs.
class Path {
 public:
  static Path& present();

  /// The value of a condition on this path.
  bool decide(const z3::expr& condition);
  /// Each number in [least, most] in turn, on paths of its own.
  int each(const std::string& name, int least, int most);
  /// From here on only values are considered for which the condition holds.
  void assume(const z3::expr& condition) { assumptions_.push_back(condition); }
  /// Prints a line and ends the program unless the condition holds for all values on this path. It does not throw,
  /// because most of the shipped code must not.
  void require(const z3::expr& condition, const char* what);
  /// A symbol with this name, which a counterexample shows.
  z3::expr symbol(const std::string& name, const z3::sort& sort);

  /// A symbol for the product of two whole numbers that are not negative. Most conditions follow from the order of the
  /// products alone, which is linear, and quickly found. Only where that is not enough the solver has to multiply.
  z3::expr product(const z3::expr& a, const z3::expr& b);

 private:
  friend class Proof;

  struct Choice {
    int value, last;
  };

  struct Product {
    z3::expr a;
    z3::expr b;
    z3::expr value;
  };

  z3::check_result check(const z3::expr& condition, bool multiplies, std::string* counterexample = nullptr);
  bool begin_lemma(const std::string& name, const std::vector<std::string>& chosen);
  void begin();
  bool next();
  void end_lemma();
  void report(const char* result, const std::string& why) const;

  std::vector<Choice> choices_;
  std::size_t at_ = 0;
  std::vector<z3::expr> assumptions_;
  std::vector<Product> products_;
  std::vector<z3::expr> named_;
  std::string chosen_, lemma_;
  double begun_ = 0;
  int paths_ = 0;
  bool any_possible_ = false;  // some values fulfil the assumptions of a path
  int symbols_ = 0;
  bool only_bits_ = true;
};

/// A symbolic condition.
class Bit {
 public:
  explicit Bit(z3::expr value) : value_(std::move(value)) {}
  const z3::expr& expr() const { return value_; }
  operator bool() const { return Path::present().decide(value_); }

 private:
  z3::expr value_;
};

inline Bit implies(const Bit& condition, const Bit& result) {
  return Bit(z3::implies(condition.expr(), result.expr()));
}
inline void assume(const Bit& condition) { Path::present().assume(condition.expr()); }
inline void assume(bool condition) { Path::present().assume(solver_context().bool_val(condition)); }
inline void require(const Bit& condition, const char* what) { Path::present().require(condition.expr(), what); }
inline void require(bool condition, const char* what) {
  Path::present().require(solver_context().bool_val(condition), what);
}
/// Requires the condition, and tells the solver that it holds.
inline void conclude(const Bit& condition, const char* what) {
  require(condition, what);
  assume(condition);
}

/// Any value in [least, most].
template <class Number, class Least, class Most>
Number any(const std::string& name, const Least& least, const Most& most) {
  const Number number(name);
  assume(number >= Number(least));
  assume(number <= Number(most));
  return number;
}

/// Each number in [least, most] in turn, on paths of its own.
inline int each(const std::string& name, int least, int most) { return Path::present().each(name, least, most); }

/// A program of lemmas. Its arguments name those that are to run; without any, all run.
class Proof {
 public:
  Proof(int count, char** arguments) : chosen_(arguments + 1, arguments + count) {}

  /// Runs the lemma on each path, and prints a line about it.
  template <class Body>
  void lemma(const std::string& name, const Body& body) {
    if (!Path::present().begin_lemma(name, chosen_)) return;
    do {
      Path::present().begin();
      body();
    } while (Path::present().next());
    Path::present().end_lemma();
    ++lemmas_;
  }

  /// The exit status.
  int result() const { return lemmas_ != 0 ? 0 : 1; }

 private:
  std::vector<std::string> chosen_;
  int lemmas_ = 0;
};

}  // namespace hwt::arithmetic
