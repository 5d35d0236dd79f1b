#pragma once

#include <array>
#include <concepts>
#include <type_traits>

#include "tests/arithmetic/proof.h"

namespace hwt::arithmetic {

/// A symbolic integer as a vector of bits: for code that shifts and masks. A signed sum or difference that
/// overflows is refuted.
template <unsigned kWidth, bool kSigned>
class Bits {
 public:
  /// Any value.
  explicit Bits(const std::string& name) : value_(Path::present().symbol(name, solver_context().bv_sort(kWidth))) {}
  explicit Bits(z3::expr value) : value_(std::move(value)) {}

  template <std::integral Integer>
  Bits(Integer value) : value_(of(value)) {}  // NOLINT: as an integer converts
  template <unsigned kOther, bool kSignedOther>
  explicit Bits(const Bits<kOther, kSignedOther>& other) : value_(converted<kSignedOther>(other.expr(), kOther)) {}

  const z3::expr& expr() const { return value_; }

  /// An enumerator with a value of at most 4 bits.
  template <class Enum>
    requires std::is_enum_v<Enum>
  explicit operator Enum() const {
    unsigned value = 0;
    while (value < 15 && !(*this == Bits(value))) ++value;
    return static_cast<Enum>(value);
  }

  friend Bits operator+(const Bits& a, const Bits& b) {
    if constexpr (kSigned) {
      Path::present().require(z3::bvadd_no_overflow(a.value_, b.value_, true), "a sum overflows");
      Path::present().require(z3::bvadd_no_underflow(a.value_, b.value_), "a sum overflows");
    }
    return Bits(a.value_ + b.value_);
  }
  friend Bits operator-(const Bits& a, const Bits& b) {
    if constexpr (kSigned) {
      Path::present().require(z3::bvsub_no_overflow(a.value_, b.value_), "a difference overflows");
      Path::present().require(z3::bvsub_no_underflow(a.value_, b.value_, true), "a difference overflows");
    }
    return Bits(a.value_ - b.value_);
  }
  friend Bits operator*(const Bits& a, const Bits& b) { return Bits(a.value_ * b.value_); }
  friend Bits operator/(const Bits& a, const Bits& b)
    requires(!kSigned)
  {
    return Bits(z3::udiv(a.value_, b.value_));
  }
  friend Bits operator&(const Bits& a, const Bits& b) { return Bits(a.value_ & b.value_); }
  friend Bits operator|(const Bits& a, const Bits& b) { return Bits(a.value_ | b.value_); }
  friend Bits operator^(const Bits& a, const Bits& b) { return Bits(a.value_ ^ b.value_); }
  Bits operator~() const { return Bits(~value_); }
  Bits& operator|=(const Bits& other) { return *this = *this | other; }
  Bits& operator+=(const Bits& other) { return *this = *this + other; }
  Bits& operator/=(const Bits& other) { return *this = *this / other; }
  Bits& operator*=(const Bits& other) { return *this = *this * other; }
  Bits& operator++() { return *this = *this + Bits(1); }

  template <std::integral Integer>
  Bits operator<<(Integer places) const {
    require(places >= 0 && static_cast<unsigned>(places) < kWidth, "shifted by its width or more");
    return Bits(z3::shl(value_, of(places)));
  }
  template <std::integral Integer>
  Bits operator>>(Integer places) const {
    require(places >= 0 && static_cast<unsigned>(places) < kWidth, "shifted by its width or more");
    return Bits(kSigned ? z3::ashr(value_, of(places)) : z3::lshr(value_, of(places)));
  }

  friend Bit operator==(const Bits& a, const Bits& b) { return Bit(a.value_ == b.value_); }
  friend Bit operator!=(const Bits& a, const Bits& b) { return Bit(a.value_ != b.value_); }
  friend Bit operator<(const Bits& a, const Bits& b) {
    return Bit(kSigned ? a.value_ < b.value_ : z3::ult(a.value_, b.value_));
  }
  friend Bit operator<=(const Bits& a, const Bits& b) {
    return Bit(kSigned ? a.value_ <= b.value_ : z3::ule(a.value_, b.value_));
  }
  friend Bit operator>(const Bits& a, const Bits& b) { return b < a; }
  friend Bit operator>=(const Bits& a, const Bits& b) { return b <= a; }

  // What std:: has for integers.
  friend Bits max(const Bits& a, const Bits& b) { return Bits(z3::ite((a < b).expr(), b.value_, a.value_)); }
  friend Bits bit_width(const Bits& value)
    requires(!kSigned)
  {
    Bits width = 0;
    for (unsigned bit = 0; bit < kWidth; ++bit) {
      width = Bits(z3::ite(value.value_.extract(bit, bit) == 1, of(bit + 1), width.value_));
    }
    return width;
  }
  friend Bits bit_floor(const Bits& value)
    requires(!kSigned)
  {
    Bits below = value;
    for (unsigned places = 1; places < kWidth; places *= 2) below |= below >> places;
    return below ^ (below >> 1);
  }

 private:
  template <std::integral Integer>
  static z3::expr of(Integer value) {
    if constexpr (std::is_signed_v<Integer>) {
      return solver_context().bv_val(static_cast<std::int64_t>(value), kWidth);
    } else {
      return solver_context().bv_val(static_cast<std::uint64_t>(value), kWidth);
    }
  }
  template <bool kSignedOther>
  static z3::expr converted(const z3::expr& value, unsigned width) {
    if (width > kWidth) return value.extract(kWidth - 1, 0);
    if (width == kWidth) return value;
    return kSignedOther ? z3::sext(value, kWidth - width) : z3::zext(value, kWidth - width);
  }

  z3::expr value_;
};

}  // namespace hwt::arithmetic
