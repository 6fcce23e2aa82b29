// Direct two-shot: reduce-scatter, then all-gather, each in one flight. Rank r owns block r: it gathers that block from
// everyone, reduces it in rank order, and gives the result to everyone. Reduce-scatter is the first half, all-gather
// and broadcast are the second; reduce gives the results to the root alone.
//
// FIFO 0 carries inputs to the owner of a block, FIFO 1 carries results. Streams, staged: one pushes inputs, one owns
// the block, one drains results; the pushes come first, so that no line is looked for before mine is on its way. In the
// direct form stream 0 owns the block, and the two others run only where this rank's own buffer is staged.
//
// A direct broadcast is cut into blocks so that all ranks move bytes: the root pushes the block of its number to
// everyone, and everyone pulls the others from it.
#include "schedule/algorithm.h"
#include "schedule/algorithms/refs.h"

namespace talaria {
namespace {

constexpr uint8_t kInputs = 0, kResults = 1;

bool serves(Operation operation, uint32_t, Form) {
  return operation == Operation::kAllReduce || operation == Operation::kReduceScatter ||
         operation == Operation::kAllGather || operation == Operation::kBroadcast ||
         operation == Operation::kReduce;
}

struct Builder {
  const Shape& shape;
  Plan plan;

  bool direct() const { return shape.form == Form::kDirect; }
  bool is_root() const { return shape.rank == static_cast<uint32_t>(shape.root); }
  uint32_t at_distance(uint32_t d) const { return (shape.rank + d) % shape.nranks; }
  uint32_t at_distance_behind(uint32_t d) const { return (shape.rank + shape.nranks - d) % shape.nranks; }

  Ref result_to(uint32_t peer) const { return direct() ? peer_output(peer, kResults) : inbox(peer, kResults); }
  Ref input_of(uint32_t peer) const {
    if (peer == shape.rank) return own_input(kRaw);
    return direct() ? peer_input(peer, kInputs, kRaw) : inbox(peer, kInputs, kRaw);
  }
  static Ref pushed_input(uint32_t peer) { return inbox(peer, kInputs); }
  std::vector<Ref> to_every_peer(Ref (*ref)(uint32_t)) const {
    std::vector<Ref> refs;
    for (uint32_t d = 1; d < shape.nranks; ++d) refs.push_back(ref(at_distance(d)));
    return refs;
  }

  // Tell the peers which of my buffers they may touch; only in the direct form, before anything else.
  void announce(bool input, bool output) {
    if (!direct() || shape.nranks == 1) return;
    std::vector<Ref> refs;
    if (input) refs = to_every_peer(ready_input);
    if (output) {
      for (const Ref& ref : to_every_peer(ready_output)) refs.push_back(ref);
    }
    plan.add(0, {}, refs, 0, Plan::Phase::kPrologue);
  }
  // Tell the peers that I no longer touch theirs, and stay until they no longer touch mine.
  void leave() {
    if (!direct() || shape.nranks == 1) return;
    plan.add(0, {}, to_every_peer(signal_done), 0, Plan::Phase::kEpilogue);
    plan.add(0, to_every_peer(wait_done), {}, 0, Plan::Phase::kEpilogue);
  }
  // Who gets the result of my block, me first: everyone, or only the root, or only me.
  std::vector<Ref> result_sinks() const {
    if (shape.operation == Operation::kReduce && !is_root()) return {result_to(static_cast<uint32_t>(shape.root))};
    std::vector<Ref> sinks{own_output()};
    const bool scatters = shape.operation == Operation::kAllReduce || shape.operation == Operation::kAllGather;
    for (uint32_t d = 1; scatters && d < shape.nranks; ++d) sinks.push_back(result_to(at_distance(d)));
    return sinks;
  }
  void own_block(bool reduce) {
    std::vector<Ref> sources;
    for (uint32_t p = 0; reduce && p < shape.nranks; ++p) sources.push_back(input_of(p));
    if (!reduce) sources.push_back(own_input());
    plan.add(shape.rank, sources, result_sinks(), reduce ? kFinal : 0);
  }
  void push_inputs() {
    if (shape.nranks == 1) return;
    plan.begin_stream(direct() ? Condition::kInputStaged : Condition::kAlways);
    for (uint32_t d = 1; d < shape.nranks; ++d)
      plan.add(at_distance(d), {own_input()}, {inbox(at_distance(d), kInputs)});
  }
  void drain_results() {
    if (shape.nranks == 1) return;
    plan.begin_stream(direct() ? Condition::kOutputStaged : Condition::kAlways);
    for (uint32_t d = 1; d < shape.nranks; ++d) {
      plan.add(at_distance_behind(d), {inbox(at_distance_behind(d), kResults)}, {own_output()});
    }
  }

  void all_to_all_blocks() {
    const bool reduce = reduces(shape.operation);
    const bool receives = shape.operation == Operation::kReduce ? is_root()
                                                                : shape.operation != Operation::kReduceScatter;
    if (reduce && !direct()) push_inputs();
    plan.begin_stream();
    announce(reduce, receives);
    own_block(reduce);
    leave();
    if (reduce && direct()) push_inputs();
    if (receives) drain_results();
  }

  void staged_broadcast() {
    plan.begin_stream();
    if (!is_root()) {
      plan.add(0, {inbox(static_cast<uint32_t>(shape.root), kResults)}, {own_output()});
      return;
    }
    std::vector<Ref> sinks{own_output()};
    for (uint32_t d = 1; d < shape.nranks; ++d) sinks.push_back(result_to(at_distance(d)));
    plan.add(0, {own_input()}, sinks);
  }

  void direct_broadcast_from_me() {
    plan.begin_stream();
    announce(true, false);
    std::vector<Ref> sinks;
    for (uint32_t d = 1; d < shape.nranks; ++d) sinks.push_back(result_to(at_distance(d)));
    sinks.push_back(own_output());
    plan.add(shape.rank, {own_input()}, sinks);
    for (uint32_t d = 1; d < shape.nranks; ++d) plan.add(at_distance(d), {own_input()}, {own_output()});
    leave();
    if (shape.nranks == 1) return;
    plan.begin_stream(Condition::kInputStaged);
    for (uint32_t d = 1; d < shape.nranks; ++d) plan.add(at_distance(d), {own_input()}, to_every_peer(pushed_input));
  }

  void direct_broadcast_to_me() {
    const uint32_t root = static_cast<uint32_t>(shape.root);
    plan.begin_stream();
    plan.add(0, {}, {ready_output(root)}, 0, Plan::Phase::kPrologue);
    for (uint32_t d = 1; d < shape.nranks; ++d) {
      plan.add((root + d) % shape.nranks, {peer_input(root, kInputs)}, {own_output()});
    }
    plan.add(0, {}, {signal_done(root)}, 0, Plan::Phase::kEpilogue);
    plan.add(0, {wait_done(root)}, {}, 0, Plan::Phase::kEpilogue);
    plan.begin_stream(Condition::kOutputStaged);
    plan.add(root, {inbox(root, kResults)}, {own_output()});
  }
};

Plan build(const Shape& shape) {
  const bool broadcast = shape.operation == Operation::kBroadcast, staged = shape.form == Form::kStaged;
  Builder builder{shape, Plan(shape, broadcast && staged ? 1 : shape.nranks)};
  if (!broadcast) builder.all_to_all_blocks();
  else if (staged) builder.staged_broadcast();
  else if (builder.is_root()) builder.direct_broadcast_from_me();
  else builder.direct_broadcast_to_me();
  return std::move(builder.plan);
}

}  // namespace

Algorithm two_shot_algorithm() { return Algorithm{"two_shot", serves, build}; }

}  // namespace talaria
