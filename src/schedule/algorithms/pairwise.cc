// Pairwise: every block goes straight from the rank that has it to the one that needs it. A send is stream 0 of its
// sender, a receive is stream 1 of its receiver, so a group's sends never wait behind its receives. Within a stream
// transfers are ordered by distance (rank + d, rank - d), the same d on both sides, so that no cycle of waits can form
// (docs/decisions/0005-pairwise-order.md).
//
// In the direct form the owners of blocks write them to their places, but in a scatter everyone reads its own: so all
// ranks move bytes. Stream 1 then serves a buffer of this rank's that must be staged.
#include "schedule/algorithm.h"
#include "schedule/algorithms/refs.h"

namespace talaria {
namespace {

bool serves(Operation operation, uint32_t, Form form) {
  const bool moves_blocks = operation == Operation::kAlltoAll || operation == Operation::kGather ||
                            operation == Operation::kScatter;
  return moves_blocks || (form == Form::kStaged && is_point_to_point(operation));
}

void all_to_all(const Shape& shape, Plan& plan) {
  const uint32_t n = shape.nranks;
  plan.begin_stream();
  for (uint32_t d = 1; d < n; ++d) plan.add((shape.rank + d) % n, {own_input()}, {inbox((shape.rank + d) % n, 0)});
  plan.add(shape.rank, {own_input()}, {own_output()});
  plan.begin_stream();
  for (uint32_t d = 1; d < n; ++d) {
    plan.add((shape.rank + n - d) % n, {inbox((shape.rank + n - d) % n, 0)}, {own_output()});
  }
}

// Block r is rank r's: it travels to the root (gather) or from it (scatter).
void gather_or_scatter(const Shape& shape, Plan& plan) {
  const uint32_t n = shape.nranks, root = static_cast<uint32_t>(shape.root);
  const bool gather = shape.operation == Operation::kGather;
  plan.begin_stream();
  if (shape.rank != root) {
    if (gather) plan.add(shape.rank, {own_input()}, {inbox(root, 0)});
    else plan.add(shape.rank, {inbox(root, 0)}, {own_output()});
    return;
  }
  plan.add(root, {own_input()}, {own_output()});
  for (uint32_t d = 1; d < n; ++d) {
    const uint32_t peer = (root + d) % n;
    if (gather) plan.add(peer, {inbox(peer, 0)}, {own_output()});
    else plan.add(peer, {own_input()}, {inbox(peer, 0)});
  }
}

std::vector<Ref> each_peer(const Shape& shape, Ref (*ref)(uint32_t)) {
  std::vector<Ref> refs;
  for (uint32_t d = 1; d < shape.nranks; ++d) refs.push_back(ref((shape.rank + d) % shape.nranks));
  return refs;
}

void add_flags(Plan& plan, Plan::Phase phase, const std::vector<Ref>& sources, const std::vector<Ref>& sinks) {
  if (!sources.empty() || !sinks.empty()) plan.add(0, sources, sinks, 0, phase);
}

void direct_all_to_all(const Shape& shape, Plan& plan) {
  const uint32_t n = shape.nranks;
  plan.begin_stream();
  add_flags(plan, Plan::Phase::kPrologue, {}, each_peer(shape, ready_output));
  for (uint32_t d = 1; d < n; ++d) {
    const uint32_t peer = (shape.rank + d) % n;
    plan.add(peer, {own_input()}, {peer_output(peer, 0)}, kOwnBlockAtPeer);
  }
  plan.add(shape.rank, {own_input()}, {own_output()});
  add_flags(plan, Plan::Phase::kEpilogue, {}, each_peer(shape, signal_done));
  add_flags(plan, Plan::Phase::kEpilogue, each_peer(shape, wait_done), {});
  if (n == 1) return;
  plan.begin_stream(Condition::kOutputStaged);
  for (uint32_t d = 1; d < n; ++d) {
    plan.add((shape.rank + n - d) % n, {inbox((shape.rank + n - d) % n, 0)}, {own_output()});
  }
}

void direct_gather_or_scatter(const Shape& shape, Plan& plan) {
  const uint32_t n = shape.nranks, root = static_cast<uint32_t>(shape.root);
  const bool gather = shape.operation == Operation::kGather;
  plan.begin_stream();
  if (shape.rank != root) {
    if (gather) plan.add(shape.rank, {own_input()}, {peer_output(root, 0)});
    else plan.add(shape.rank, {peer_input(root, 0)}, {own_output()});
    plan.add(0, {}, {signal_done(root)}, 0, Plan::Phase::kEpilogue);
    return;
  }
  add_flags(plan, Plan::Phase::kPrologue, {}, each_peer(shape, gather ? ready_output : ready_input));
  plan.add(root, {own_input()}, {own_output()});
  add_flags(plan, Plan::Phase::kEpilogue, each_peer(shape, wait_done), {});
  if (n == 1) return;
  plan.begin_stream(gather ? Condition::kOutputStaged : Condition::kInputStaged);
  for (uint32_t d = 1; d < n; ++d) {
    const uint32_t peer = (root + d) % n;
    if (gather) plan.add(peer, {inbox(peer, 0)}, {own_output()});
    else plan.add(peer, {own_input()}, {inbox(peer, 0)});
  }
}

Plan build(const Shape& shape) {
  const uint32_t peer = static_cast<uint32_t>(shape.root);
  Plan plan(shape, is_point_to_point(shape.operation) ? 1 : shape.nranks);
  const bool direct = shape.form == Form::kDirect;
  if (shape.operation == Operation::kAlltoAll) {
    (direct ? direct_all_to_all : all_to_all)(shape, plan);
  } else if (!is_point_to_point(shape.operation)) {
    (direct ? direct_gather_or_scatter : gather_or_scatter)(shape, plan);
  } else if (shape.operation == Operation::kSend) {
    // A send to oneself is matched with its receive before planning: one local copy.
    plan.begin_stream();
    if (peer == shape.rank) plan.add(0, {own_input()}, {own_output()});
    else plan.add(0, {own_input()}, {inbox(peer, 0)});
  } else {
    plan.begin_stream();  // stream 0 stays empty: it belongs to sends
    plan.begin_stream();
    if (peer != shape.rank) plan.add(0, {inbox(peer, 0)}, {own_output()});
  }
  return plan;
}

}  // namespace

Algorithm pairwise_algorithm() { return Algorithm{"pairwise", serves, build}; }

}  // namespace talaria
