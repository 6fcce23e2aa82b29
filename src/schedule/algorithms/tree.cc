// Double binary tree (Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
// 2009): partial sums climb to a root, the result comes down; 2·log2(n) hops. All-reduce cuts the data into two blocks,
// one per tree. A rank that forwards in one tree is a leaf of the other, so every rank sends and receives about twice
// the data. Reduce and broadcast climb or descend one tree.
//
// Ranks stand in a tree in their own order: left subtree, rank, right subtree. So even positions are leaves, and the
// second tree is the first one moved by one rank. Sums are added in that order too and rounded at each rank.
//
// FIFO t belongs to tree t. Stream 0 climbs and stream 1 descends, so a round does not wait for the way back of the one
// before. Within a round a rank climbs first where it is a leaf, and descends there last: no tree then waits for the
// other. The next round waits for both, so rounds are log2(n) hops apart; lanes overlap. A step depends only on earlier
// rounds, and in its round on ranks below (climbing) or above (descending): no cycle, even with one slot per FIFO.
#include <bit>

#include "schedule/algorithm.h"
#include "schedule/algorithms/refs.h"

namespace talaria {
namespace {

constexpr uint32_t kTrees = 2;
constexpr uint32_t kNobody = ~0u;

bool serves(Operation operation, uint32_t nranks, Form form) {
  const bool known = operation == Operation::kAllReduce || operation == Operation::kReduce ||
                     operation == Operation::kBroadcast;
  return known && nranks >= 2 && form == Form::kStaged;
}

// The top of the subtree over positions [low, low + size): everything left of it is a full tree.
uint32_t top_of(uint32_t low, uint32_t size) { return size == 0 ? kNobody : low + std::bit_floor(size) - 1; }

// One rank's place in a tree over ranks first, first + 1, … around to first - 1.
struct Links {
  uint32_t parent, left, right;  // ranks, or kNobody
  bool is_leaf() const { return left == kNobody && right == kNobody; }
};

Links links_of(uint32_t rank, uint32_t first, uint32_t n) {
  const uint32_t position = (rank + n - first) % n;
  uint32_t low = 0, size = n, parent = kNobody, top = top_of(low, size);
  while (top != position) {
    parent = top;
    const uint32_t end = low + size;
    if (position > top) low = top + 1, size = end - low;
    else size = top - low;
    top = top_of(low, size);
  }
  const auto rank_at = [&](uint32_t at) { return at == kNobody ? kNobody : (first + at) % n; };
  return {rank_at(parent), rank_at(top_of(low, top - low)), rank_at(top_of(top + 1, low + size - top - 1))};
}

struct Builder {
  const Shape& shape;
  Plan plan;

  static void add_child(std::vector<Ref>& refs, uint32_t child, uint32_t tree) {
    if (child != kNobody) refs.push_back(inbox(child, static_cast<uint8_t>(tree)));
  }
  static std::vector<Ref> sinks_below(const Links& links, uint32_t tree) {
    std::vector<Ref> sinks{own_output()};
    add_child(sinks, links.left, tree);
    add_child(sinks, links.right, tree);
    return sinks;
  }
  // The sum of this rank's subtree goes to its parent; at the top it is the result, which goes to `result_sinks`.
  void climb(const Links& links, uint32_t tree, const std::vector<Ref>& result_sinks) {
    std::vector<Ref> sources;
    add_child(sources, links.left, tree);
    sources.push_back(own_input(kRaw));
    add_child(sources, links.right, tree);
    if (links.parent == kNobody) plan.add(tree, sources, result_sinks, kFinal);
    else plan.add(tree, sources, {inbox(links.parent, static_cast<uint8_t>(tree))});
  }
  void descend(const Links& links, uint32_t tree) {
    plan.add(tree, {inbox(links.parent, static_cast<uint8_t>(tree))}, sinks_below(links, tree));
  }

  void all_reduce() {
    Links links[kTrees];
    for (uint32_t tree = 0; tree < kTrees; ++tree) links[tree] = links_of(shape.rank, tree, shape.nranks);
    const uint32_t leaf = links[0].is_leaf() ? 0 : 1;  // a tree of which this rank is a leaf
    const uint32_t other = 1 - leaf;
    plan.begin_stream();
    climb(links[leaf], leaf, {});
    climb(links[other], other, sinks_below(links[other], other));
    plan.begin_stream();
    if (links[other].parent != kNobody) descend(links[other], other);
    descend(links[leaf], leaf);
  }

  // The tree whose top is the call's root.
  Links rooted_links() const {
    const uint32_t n = shape.nranks, root = static_cast<uint32_t>(shape.root);
    return links_of(shape.rank, (root + n - top_of(0, n)) % n, n);
  }
  void reduce() {
    plan.begin_stream();
    climb(rooted_links(), 0, {own_output()});
  }
  void broadcast() {
    const Links links = rooted_links();
    plan.begin_stream();
    if (links.parent == kNobody) plan.add(0, {own_input()}, sinks_below(links, 0));
    else descend(links, 0);
  }
};

Plan build(const Shape& shape) {
  const bool both = shape.operation == Operation::kAllReduce;
  Builder builder{shape, Plan(shape, both ? kTrees : 1)};
  if (both) builder.all_reduce();
  else if (shape.operation == Operation::kReduce) builder.reduce();
  else builder.broadcast();
  return std::move(builder.plan);
}

}  // namespace

Algorithm tree_algorithm() { return Algorithm{"tree", serves, build}; }

}  // namespace talaria
