// Where the hierarchical wheel keeps a tick, for every power of two of slots up to 2^12, every tick and every cursor.

#include "hashed_wheel_timer/internal/wheel/slot_levels.h"
#include "tests/arithmetic/bits.h"

namespace {

using namespace hwt::arithmetic;
using hwt::internal::kNever;

using Tick = Bits<64, true>;
using Number = Bits<64, false>;

/// A table of rising numbers with a symbolic index. Each element that the index may select begins a path of its own.
template <class Element, std::size_t kSize>
class Table {
 public:
  Element& operator[](std::size_t index) { return elements_[index]; }
  Element operator[](const Number& index) const {
    require(index < Number(kSize), "an index is in the table");
    std::size_t first = 0;
    for (std::size_t end = kSize; elements_[first] != elements_[end - 1];) {
      // Between two different elements.
      std::size_t middle = (first + end) / 2;
      while (elements_[middle - 1] == elements_[middle] && middle - 1 > first) --middle;
      while (elements_[middle - 1] == elements_[middle]) ++middle;
      if (index < Number(middle)) {
        end = middle;
      } else {
        first = middle;
      }
    }
    return elements_[first];
  }
  std::size_t size() const { return kSize; }
  Element back() const { return elements_[kSize - 1]; }

 private:
  Element elements_[kSize] = {};
};

using Digits = hwt::internal::BasicTickDigits<Tick, Number, Number, Table>;

constexpr int kMostBits = 12;
Tick any_tick(const char* name) { return any<Tick>(name, 0, kNever - 1); }

/// The number of a tick's span, of so many bits, among all spans of that length.
Tick span(const Tick& tick, int bits) { return bits < 63 ? tick >> bits : Tick(0); }

/// A tick at a cursor or after it, and its slot.
struct Filed {
  explicit Filed(int least_bits = 1) : bits(each("bits", least_bits, kMostBits)) {}

  int bits;
  Digits digits{std::int64_t{1} << bits};
  Tick cursor = any_tick("cursor");
  Tick tick = after(cursor);
  Digits::SlotIndex place = digits.place_of(tick, cursor);
  Tick begin = digits.begin_of(place, cursor);
  int shift = static_cast<int>(place.level) * bits;  // of the slot's span
  int shift_above = shift + bits;                    // of the level's

 private:
  static Tick after(const Tick& cursor) {
    Tick tick = any_tick("tick");
    assume(tick >= cursor);
    return tick;
  }
};

}  // namespace

int main(int count, char** arguments) {
  Proof proof(count, arguments);

  proof.lemma("levels_slot_holds_its_tick", [] {
    const Filed filed;
    require(filed.place.level < filed.digits.levels(), "its level exists");
    require(filed.place.digit < Number(filed.digits.slots_per_level()), "its digit is in range");
    require(filed.begin <= filed.tick, "never late: the slot begins at its tick or before");
    require(span(filed.begin, filed.shift) == span(filed.tick, filed.shift), "the tick is in the slot's span");
    require(implies(filed.tick > filed.cursor, filed.begin > filed.cursor), "found again: the slot is still to come");
    if (filed.place.level == 0) require(filed.begin == filed.tick, "never early: on the lowest level it is the tick");
  });
  proof.lemma("levels_no_slot_skipped", [] {
    const Filed filed;
    require(span(filed.tick, filed.shift_above) == span(filed.cursor, filed.shift_above),
            "no slot is reached by wrapping");
    // Any slot of a higher level that is still to come: it begins where a span of that level does.
    if (filed.shift_above < 63) {
      const Tick higher = any_tick("higher");
      assume(higher > filed.cursor);
      assume(((higher >> filed.shift_above) << filed.shift_above) == higher);
      require(higher > filed.tick, "slots of higher levels begin later");
    }
    const Tick other = any_tick("other");
    assume(other >= filed.tick);
    assume(span(other, filed.shift_above) == span(filed.cursor, filed.shift_above));
    require(filed.digits.digit_of(other, filed.place.level) >= filed.place.digit, "in a level, slots are in order");
  });
  proof.lemma("levels_slot_stays", [] {
    const Filed filed;
    const Tick later = any_tick("later");
    assume(later >= filed.cursor);
    assume(later < filed.begin);
    const Digits::SlotIndex place = filed.digits.place_of(filed.tick, later);
    require(place.level == filed.place.level, "its level stays until the slot begins");
    require(place.digit == filed.place.digit, "its digit stays until the slot begins");
    require(filed.digits.begin_of(place, later) == filed.begin, "the slot begins when it did");
  });
  // From 8 slots on: with fewer there are many levels, and too many pairs of them.
  proof.lemma("levels_come_down", [] {
    const Filed filed(3);
    assume(filed.tick > filed.begin);
    const Digits::SlotIndex place = filed.digits.place_of(filed.tick, filed.begin);
    require(place.level < filed.place.level, "when its slot begins, it comes down");
  });
  return proof.result();
}
