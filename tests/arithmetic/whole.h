#pragma once

#include <concepts>
#include <type_traits>

#include "tests/arithmetic/proof.h"

namespace hwt::arithmetic {

/// A symbolic integer of so many bits as a whole number: for code that multiplies and divides, which is too hard for
/// the solver bit by bit. Unsigned ones wrap. An overflow of a signed one is refuted.
template <unsigned kWidth, bool kSigned>
class Whole {
 public:
  /// Any value.
  explicit Whole(const std::string& name) : value_(Path::present().symbol(name, solver_context().int_sort())) {
    Path::present().assume(value_ >= least());
    Path::present().assume(value_ < end());
  }
  explicit Whole(z3::expr value) : value_(std::move(value)) {}

  template <std::integral Integer>
  Whole(Integer value) : value_(of(value)) {}  // NOLINT: as an integer converts
  template <unsigned kOther, bool kSignedOther>
  explicit Whole(const Whole<kOther, kSignedOther>& other) : value_(wrapped(other.expr())) {}

  const z3::expr& expr() const { return value_; }

  friend Whole operator+(const Whole& a, const Whole& b) { return computed(a.value_ + b.value_, "a sum overflows"); }
  friend Whole operator-(const Whole& a, const Whole& b) {
    return computed(a.value_ - b.value_, "a difference overflows");
  }
  friend Whole operator*(const Whole& a, const Whole& b)
    requires(!kSigned)
  {
    return Whole(wrapped(Path::present().product(a.value_, b.value_)));
  }
  friend Whole operator/(const Whole& a, const Whole& b) { return divided(a, b).quotient; }
  friend Whole operator%(const Whole& a, const Whole& b) { return divided(a, b).remainder; }
  Whole& operator+=(const Whole& other) { return *this = *this + other; }
  Whole& operator-=(const Whole& other) { return *this = *this - other; }
  Whole& operator*=(const Whole& other) { return *this = *this * other; }
  Whole& operator++() { return *this = *this + Whole(1); }

  Whole operator<<(unsigned places) const { return *this * Whole(power(places)); }
  Whole operator>>(unsigned places) const { return *this / Whole(power(places)); }

  friend Bit operator==(const Whole& a, const Whole& b) { return Bit(a.value_ == b.value_); }
  friend Bit operator!=(const Whole& a, const Whole& b) { return Bit(a.value_ != b.value_); }
  friend Bit operator<(const Whole& a, const Whole& b) { return Bit(a.value_ < b.value_); }
  friend Bit operator<=(const Whole& a, const Whole& b) { return Bit(a.value_ <= b.value_); }
  friend Bit operator>(const Whole& a, const Whole& b) { return b < a; }
  friend Bit operator>=(const Whole& a, const Whole& b) { return b <= a; }

  friend int bit_width(const Whole& value) {
    int width = 0;
    while (width < static_cast<int>(kWidth) && !Bit(value.value_ < power(static_cast<unsigned>(width)))) ++width;
    return width;
  }

  static z3::expr power(unsigned exponent) {
    z3::expr power = solver_context().int_val(1);
    for (; exponent > 0; --exponent) power = (power * 2).simplify();
    return power;
  }

 private:
  struct Division {
    Whole quotient;
    Whole remainder;
  };

  static z3::expr least() { return kSigned ? -power(kWidth - 1) : solver_context().int_val(0); }
  static z3::expr end() { return power(kSigned ? kWidth - 1 : kWidth); }
  static z3::expr unnamed() { return Path::present().symbol("", solver_context().int_sort()); }

  template <std::integral Integer>
  static z3::expr of(Integer value) {
    if constexpr (std::is_signed_v<Integer>) {
      return wrapped(solver_context().int_val(static_cast<std::int64_t>(value)));
    } else {
      return solver_context().int_val(static_cast<std::uint64_t>(value));
    }
  }

  /// A sum or a difference. A signed one must fit, and an unsigned one wraps.
  static Whole computed(const z3::expr& value, const char* fault) {
    if constexpr (kSigned) {
      const z3::expr fits = value >= least() && value < end();
      Path::present().require(fits, fault);
      Path::present().assume(fits);
      return Whole(value);
    } else {
      return Whole(wrapped(value));
    }
  }

  /// The value modulo 2^kWidth.
  static z3::expr wrapped(const z3::expr& value) {
    Path& path = Path::present();
    if (path.decide(value >= least() && value < end())) return value;
    if (path.decide(value >= end() && value < end() + power(kWidth))) return value - power(kWidth);
    if (path.decide(value < least() && value >= least() - power(kWidth))) return value + power(kWidth);
    const z3::expr times = unnamed();
    const z3::expr rest = value - times * power(kWidth);
    path.assume(rest >= least() && rest < end());
    return rest;
  }

  static Division divided(const Whole& a, const Whole& b)
    requires(!kSigned)
  {
    Path& path = Path::present();
    path.require(b.value_ > 0, "a division by 0");
    const z3::expr quotient = unnamed();
    const z3::expr remainder = unnamed();
    path.assume(quotient >= 0 && remainder >= 0 && remainder < b.value_);
    path.assume(path.product(quotient, b.value_) + remainder == a.value_);
    return {Whole(quotient), Whole(remainder)};
  }

  z3::expr value_;
};

}  // namespace hwt::arithmetic
