// Ring: blocks travel from each rank to the next. All-reduce is n-1 reducing hops, then n-1 copying hops (Patarasuk and
// Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009). Partial sums are rounded at each
// hop; block b is summed in the order b, b+1, …, so the bits depend on the block, not on timing. Broadcast and reduce
// travel along the ring once, from the root or to it.
#include "schedule/algorithm.h"
#include "schedule/algorithms/refs.h"

namespace talaria {
namespace {

bool is_chain(Operation operation) { return operation == Operation::kBroadcast || operation == Operation::kReduce; }

bool serves(Operation operation, uint32_t nranks, Form form) {
  const bool known = operation == Operation::kAllReduce || operation == Operation::kReduceScatter ||
                     operation == Operation::kAllGather || is_chain(operation);
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
  uint32_t ranks_behind_root() const { return (shape.rank + n - static_cast<uint32_t>(shape.root)) % n; }
  void chain_to_root() {
    const uint32_t position = ranks_behind_root();
    if (position == 1) plan.add(0, {own_input(kRaw)}, {next});
    else if (position == 0) plan.add(0, {previous, own_input(kRaw)}, {own_output()}, kFinal);
    else plan.add(0, {previous, own_input(kRaw)}, {next});
  }
  void chain_from_root() {
    const uint32_t position = ranks_behind_root();
    const Ref source = position == 0 ? own_input() : previous;
    if (position == n - 1) plan.add(0, {source}, {own_output()});
    else plan.add(0, {source}, {own_output(), next});
  }
};

Plan build(const Shape& shape) {
  const bool chain = is_chain(shape.operation);
  Builder builder{shape, Plan(shape, chain ? 1 : shape.nranks)};
  builder.plan.begin_stream();
  if (!chain) builder.plan.set_min_depth(2);
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
    case Operation::kReduce: builder.chain_to_root(); break;
    default: builder.chain_from_root();
  }
  return std::move(builder.plan);
}

}  // namespace

Algorithm ring_algorithm() { return Algorithm{"ring", serves, build}; }

}  // namespace talaria
