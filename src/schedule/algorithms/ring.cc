// Ring: blocks travel from each rank to the next. All-reduce is n-1 reducing hops, then n-1 copying hops (Patarasuk and
// Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009). Partial sums are rounded at each
// hop; block b is summed in the order b, b+1, …, so the bits depend on the block, not on timing.
#include "schedule/algorithm.h"
#include "schedule/algorithms/refs.h"

namespace talaria {
namespace {

bool serves(Operation operation, uint32_t nranks, Form form) {
  const bool known = operation == Operation::kAllReduce || operation == Operation::kReduceScatter ||
                     operation == Operation::kAllGather || operation == Operation::kBroadcast;
  return known && nranks >= 2 && form == Form::kStaged;
}

struct Builder {
  const Shape& shape;
  Plan plan;
  uint32_t n = shape.nranks;
  Ref next = inbox((shape.rank + 1) % n, 0);
  Ref previous = inbox((shape.rank + n - 1) % n, 0);

  // The block handled at hop j when hop 0 handles `start`.
  uint32_t block_at(uint32_t start, uint32_t j) const { return (start + 2 * n - j) % n; }

  // Hops 0 … n-1: after the last, this rank holds the sum of block_at(start, n-1).
  void reduce_scatter(uint32_t start, const std::vector<Ref>& last_sinks) {
    plan.add(block_at(start, 0), {own_input(kRaw)}, {next});
    for (uint32_t j = 1; j < n - 1; ++j) plan.add(block_at(start, j), {previous, own_input(kRaw)}, {next});
    plan.add(block_at(start, n - 1), {previous, own_input(kRaw)}, last_sinks, kFinal);
  }
  // Hops 1 … n-1 of an all-gather whose hop 0 sent block `start`.
  void gather(uint32_t start) {
    for (uint32_t j = 1; j < n - 1; ++j) plan.add(block_at(start, j), {previous}, {own_output(), next});
    plan.add(block_at(start, n - 1), {previous}, {own_output()});
  }
  void chain() {
    const uint32_t position = (shape.rank + n - static_cast<uint32_t>(shape.root)) % n;
    const Ref source = position == 0 ? own_input() : previous;
    if (position == n - 1) plan.add(0, {source}, {own_output()});
    else plan.add(0, {source}, {own_output(), next});
  }
};

Plan build(const Shape& shape) {
  const bool broadcast = shape.operation == Operation::kBroadcast;
  Builder builder{shape, Plan(shape, broadcast ? 1 : shape.nranks)};
  builder.plan.begin_stream();
  if (!broadcast) builder.plan.set_min_depth(2);
  switch (shape.operation) {
    case Operation::kAllReduce:
      builder.reduce_scatter(shape.rank, {own_output(), builder.next});
      builder.gather((shape.rank + 1) % shape.nranks);
      break;
    case Operation::kReduceScatter:
      builder.reduce_scatter((shape.rank + shape.nranks - 1) % shape.nranks, {own_output()});
      break;
    case Operation::kAllGather:
      builder.plan.add(shape.rank, {own_input()}, {own_output(), builder.next});
      builder.gather(shape.rank);
      break;
    default: builder.chain();
  }
  return std::move(builder.plan);
}

}  // namespace

Algorithm ring_algorithm() { return Algorithm{"ring", serves, build}; }

}  // namespace talaria
