// The tree of due ticks, for every power of two of buckets up to 2^30.

#include <cstddef>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/internal/wheel/due_tree.h"
#include "tests/arithmetic/bits.h"

namespace {

using namespace hwt::arithmetic;
using hwt::internal::kNever;

using Tick = Bits<64, true>;
using Number = Bits<64, false>;

/// Any memory. An access beyond its end is refuted.
class Memory {
 public:
  explicit Memory(std::size_t size) : size_(size) {
    for (std::size_t i = 0; i < size; ++i) elements_.push_back(any_value());
  }

  class Element {
   public:
    Element(Memory& memory, Number index) : memory_(memory), index_(std::move(index)) {}
    operator Tick() const { return std::as_const(memory_)[index_]; }
    Element& operator=(const Tick& value) {
      for (std::size_t i = 0; i < memory_.elements_.size(); ++i) {
        Tick& element = memory_.elements_[i];
        element = Tick(z3::ite((index_ == i).expr(), value.expr(), element.expr()).simplify());
      }
      return *this;
    }

   private:
    Memory& memory_;
    const Number index_;
  };

  Element operator[](const Number& index) {
    require_inside(index);
    return Element(*this, index);
  }
  Tick operator[](const Number& index) const {
    require_inside(index);
    Tick value = any_value();
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      value = Tick(z3::ite((index == i).expr(), elements_[i].expr(), value.expr()).simplify());
    }
    return value;
  }

 private:
  static Tick any_value() {
    const Tick value(Path::present().symbol("", solver_context().bv_sort(64)));
    assume(value >= 0);  // a complement of a tick
    return value;
  }
  void require_inside(const Number& index) const { require(index < Number(size_), "an index is in the array"); }

  std::size_t size_;
  std::vector<Tick> elements_;
};

class Tree : public hwt::internal::BasicDueTree<Tick, Number, Memory> {
 public:
  using BasicDueTree::BasicDueTree;

  std::size_t levels() const { return layout_.levels; }
  /// A level's nodes are its own, and there are enough of them.
  bool covers(std::size_t level) const {
    const std::size_t end = level + 1 == levels() ? layout_.total : layout_.start[level + 1];
    return layout_.start[level] + layout_.size[level] == end &&
           (level == 0 ? layout_.size[level] == 1 : layout_.size[level - 1] * kFanOut >= layout_.size[level]);
  }
  /// Whether the parent of a node, on this level, is the largest of its children.
  Bit agrees(std::size_t level, const Number& parent) const {
    Tick largest(0);
    for (std::size_t i = 0; i < kFanOut && i < layout_.size[level]; ++i) {
      largest = max(largest, complement_[layout_.start[level] + parent * kFanOut + i]);
    }
    return largest == complement_[layout_.start[level - 1] + parent];
  }
  std::size_t size(std::size_t level) const { return layout_.size[level]; }
  static constexpr std::size_t fan_out() { return kFanOut; }
};

}  // namespace

int main(int count, char** arguments) {
  Proof proof(count, arguments);

  proof.lemma("tree_layout", [] {
    const std::size_t buckets = std::size_t{1} << each("bits", 0, 30);
    const Tree tree(buckets);
    require(tree.levels() <= 11, "its levels fit");
    require(tree.size(tree.levels() - 1) == buckets, "each bucket has a leaf");
    for (std::size_t level = 0; level < tree.levels(); ++level) require(tree.covers(level), "each node has a parent");
  });
  proof.lemma("tree_set", [] {
    const std::size_t buckets = std::size_t{1} << each("bits", 0, 4);
    Tree tree(buckets);
    const Number bucket = any<Number>("bucket", 0, buckets - 1);
    const Tick due = any<Tick>("due", 0, kNever);
    const auto each_parent = [&](const auto& visit) {
      Number parent = bucket;
      for (std::size_t level = tree.levels() - 1; level > 0; --level) {
        parent /= Tree::fan_out();
        visit(level, parent);
      }
    };
    each_parent([&](std::size_t level, const Number& parent) { assume(tree.agrees(level, parent)); });
    tree.set(bucket, due);
    require(tree.of(bucket) == due, "the bucket has the tick");
    require(tree.earliest() <= due, "never late: the root is not later");
    each_parent([&](std::size_t level, const Number& parent) {
      require(tree.agrees(level, parent), "each parent is the earliest of its children");
    });
  });
  proof.lemma("tree_first", [] {
    const Tree tree(std::size_t{1} << each("bits", 0, 4));
    for (std::size_t level = 0; level < tree.levels(); ++level) {
      for (std::size_t i = 0; level > 0 && i < tree.size(level - 1); ++i) assume(tree.agrees(level, Number(i)));
    }
    const Number first = tree.first();
    require(tree.of(first) == tree.earliest(), "found: that bucket has the earliest tick");
  });
  return proof.result();
}
