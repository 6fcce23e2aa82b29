// The shape of the double binary tree, as its plans show it.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "schedule/algorithm.h"

namespace talaria {
namespace {

struct Node {
  std::optional<uint32_t> parent;
  std::vector<uint32_t> children;
};

// A rank's place in one tree: in the stream that climbs it hears its children and tells its parent.
Node node_of(const Plan& plan, uint32_t tree) {
  Node node;
  const StreamView& climbing = plan.streams()[0];
  for (uint32_t i = climbing.first; i < climbing.first + climbing.body; ++i) {
    const Step& step = plan.steps()[i];
    if (step.block != tree) continue;
    for (uint32_t k = 0; k < uint32_t{step.sources} + step.sinks; ++k) {
      const Ref& ref = plan.refs()[step.first_ref + k];
      if (ref.place != Place::kInbox) continue;
      if (k < step.sources) node.children.push_back(ref.peer);
      else if ((step.flags & kFinal) == 0) node.parent = ref.peer;
    }
  }
  return node;
}

TEST(Tree, EachRankForwardsInOneTreeAtMostAndDepthIsLogarithmic) {
  const Algorithm* tree = find_algorithm("tree");
  for (uint32_t n = 2; n <= 130; ++n) {
    std::vector<Node> nodes[2];
    for (uint32_t rank = 0; rank < n; ++rank) {
      const Plan plan = tree->build(Shape{Operation::kAllReduce, 0, rank, n, Form::kStaged});
      for (uint32_t t = 0; t < 2; ++t) nodes[t].push_back(node_of(plan, t));
      EXPECT_TRUE(nodes[0][rank].children.empty() || nodes[1][rank].children.empty()) << rank << " of " << n;
    }
    for (const std::vector<Node>& members : nodes) {
      EXPECT_EQ(std::ranges::count_if(members, [](const Node& node) { return !node.parent; }), 1) << n;
      for (uint32_t rank = 0; rank < n; ++rank) {
        EXPECT_LE(members[rank].children.size(), 2u);
        for (uint32_t child : members[rank].children) EXPECT_EQ(members[child].parent, rank) << n;
        int depth = 0;
        for (uint32_t at = rank; members[at].parent; at = *members[at].parent) ++depth;
        ASSERT_LT(depth, std::bit_width(n)) << rank << " of " << n;
      }
    }
  }
}

TEST(Tree, TheRootOfTheCallIsTheTop) {
  for (uint32_t n = 2; n <= 20; ++n) {
    for (uint32_t root = 0; root < n; ++root) {
      const Shape shape{Operation::kReduce, static_cast<int32_t>(root), root, n, Form::kStaged};
      const Plan plan = find_algorithm("tree")->build(shape);
      EXPECT_FALSE(node_of(plan, 0).parent) << root << " of " << n;
      ASSERT_EQ(plan.steps().size(), 1u);
      EXPECT_EQ(plan.steps()[0].flags, kFinal);
    }
  }
}

}  // namespace
}  // namespace talaria
