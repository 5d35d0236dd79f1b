// Compares DueTree with a multiset.

#include "hashed_wheel_timer/internal/wheel/due_tree.h"

#include <cstddef>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace hwt::internal {
namespace {

class DueTreeOfSize : public ::testing::TestWithParam<std::size_t> {};

TEST_P(DueTreeOfSize, KnowsTheEarliest) {
  const std::size_t buckets = GetParam();
  DueTree tree(buckets);
  EXPECT_EQ(tree.earliest(), kNever);
  std::vector<Tick> model(buckets, kNever);
  std::multiset<Tick> ticks(model.begin(), model.end());
  std::mt19937_64 random(buckets);
  for (int step = 0; step < 20'000; ++step) {
    const std::size_t bucket = random() % buckets;
    const Tick due = random() % 4 == 0 ? kNever : static_cast<Tick>(random() % 1000);
    ticks.erase(ticks.find(model[bucket]));
    ticks.insert(due);
    model[bucket] = due;
    tree.set(bucket, due);
    ASSERT_EQ(tree.earliest(), *ticks.begin()) << "step " << step;
    ASSERT_EQ(tree.of(tree.first()), tree.earliest());
    ASSERT_EQ(tree.of(bucket), due);
  }
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) ASSERT_EQ(tree.of(bucket), model[bucket]);
}

INSTANTIATE_TEST_SUITE_P(Sizes, DueTreeOfSize, ::testing::Values(1, 2, 7, 8, 9, 64, 65, 512, 4096, 5000),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace hwt::internal
