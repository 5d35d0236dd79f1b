// Durations as nanoseconds, for every count of common and odd periods; deadlines; distances.

#include <utility>

#include "hashed_wheel_timer/detail/saturating.h"
#include "hashed_wheel_timer/internal/time/clock.h"
#include "tests/arithmetic/whole.h"

namespace {

using namespace hwt::arithmetic;
using hwt::detail::kMaxNanoseconds;
using hwt::internal::kForever;

using Time = Whole<64, true>;
using Word = Whole<64, false>;
using Wide = Whole<128, false>;

constexpr std::uint64_t kMax = kMaxNanoseconds;

// Nanoseconds per period: from attoseconds to years, video frames, ticks of 1/3 s and of 1/90000 s, and an odd one.
constexpr std::pair<std::uint64_t, std::uint64_t> kPeriods[] = {
    {1, 1},
    {1000, 1},
    {1'000'000, 1},
    {1'000'000'000, 1},
    {60'000'000'000, 1},
    {3'600'000'000'000, 1},
    {86'400'000'000'000, 1},
    {604'800'000'000'000, 1},
    {2'629'746'000'000'000, 1},
    {31'556'952'000'000'000, 1},
    {1, 1000},
    {1, 1'000'000},
    {1, 1'000'000'000},
    {1'000'000'000, 3},
    {100'100'000, 3},
    {100'000, 9},
    {999'999'937, 1'000'003},
};

/// A count of any number is converted to the least number of nanoseconds that is not shorter, or to the largest.
template <class Count>
void scale_is_exact() {
  const auto& [num, den] = kPeriods[each("period", 0, std::size(kPeriods) - 1)];
  const Count count("count");
  const z3::expr result = hwt::detail::scale<Word>(count, num, den).expr();
  const z3::expr exact = count.expr() * Word(num).expr();
  const z3::expr limit = Word(kMax).expr();
  const z3::expr divisor = Word(den).expr();
  require(Bit(result * divisor >= exact || result == limit), "not shorter");
  require(Bit(result == 0 || (result - 1) * divisor < exact), "not longer");
  require(Bit(result <= limit), "saturated");
}

z3::expr product(const Word& a, const Word& b) { return Path::present().product(a.expr(), b.expr()); }

/// One step of the long division, from any digits before it.
void long_division_takes_a_digit() {
  const Word den = any<Word>("den", 1, kMax);
  const Word value("value");
  const Word digits = any<Word>("digits", 0, kMax);
  hwt::detail::LongDivision<Word> division{Word("quotient"), Word("remainder")};
  assume(value < den);
  assume(division.remainder < den);
  const z3::expr dividend = product(value, digits);
  assume(Bit(product(den, digits) == product(digits, den)));  // two symbols for the solver
  assume(Bit(product(division.quotient, den) + division.remainder.expr() == dividend));
  conclude(Bit(division.quotient.expr() < digits.expr() || division.quotient.expr() == 0),
           "the quotient is less than the digits");
  const bool digit = each("digit", 0, 1) != 0;
  const Word next(2 * digits.expr() + (digit ? 1 : 0));
  division.take_digit(digit, value, den);
  require(division.remainder < den, "the remainder is less than the divisor");
  require(Bit(product(division.quotient, den) + division.remainder.expr() == product(value, next)),
          "quotient and remainder are those of one more digit");
}

}  // namespace

int main(int count, char** arguments) {
  Proof proof(count, arguments);

  proof.lemma("durations_exact", scale_is_exact<Word>);
  proof.lemma("durations_of_128_bits_exact", scale_is_exact<Wide>);
  proof.lemma("durations_long_division", long_division_takes_a_digit);
  proof.lemma("durations_deadline_after", [] {
    const Time now("now");
    const Time delay = any<Time>("delay", 0, kForever);
    const Time deadline = hwt::internal::deadline_after(now, delay);
    require(deadline >= now, "not before now");
    require(Bit(deadline.expr() == now.expr() + delay.expr()) ||
                (deadline == kForever && Bit(now.expr() + delay.expr() >= Time(kForever).expr())),
            "exact, or for ever");
  });
  proof.lemma("durations_distance", [] {
    const Time from("from");
    const Time to("to");
    assume(from <= to);
    const z3::expr distance = hwt::detail::distance(Word(from), Word(to)).expr();
    const z3::expr exact = to.expr() - from.expr();
    const z3::expr limit = Word(kMax).expr();
    require(Bit(distance == z3::ite(exact < limit, exact, limit)), "exact, or the largest");
  });
  return proof.result();
}
