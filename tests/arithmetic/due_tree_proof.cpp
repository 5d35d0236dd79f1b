// The layout of the tree of due ticks, for every power of two of buckets up to 2^30.

#include "hashed_wheel_timer/internal/wheel/due_tree.h"
#include "tests/arithmetic/bits.h"

namespace {

using namespace hwt::arithmetic;

struct NoMemory {
  explicit NoMemory(std::size_t) {}
};

class Tree : public hwt::internal::BasicDueTree<Bits<64, true>, Bits<64, false>, NoMemory> {
 public:
  using BasicDueTree::BasicDueTree;

  std::size_t levels() const { return layout_.levels; }
  std::size_t size(std::size_t level) const { return layout_.size[level]; }
  /// A level's nodes are its own, and each has a parent.
  bool covers(std::size_t level) const {
    const std::size_t end = level + 1 == levels() ? layout_.total : layout_.start[level + 1];
    return layout_.start[level] + layout_.size[level] == end &&
           (level == 0 ? layout_.size[level] == 1 : layout_.size[level - 1] * kFanOut >= layout_.size[level]);
  }
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
  return proof.result();
}
