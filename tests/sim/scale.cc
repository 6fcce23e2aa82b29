#include "sim/scale.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "sim/arith.h"

namespace talaria::sim {
namespace {

constexpr uint32_t kNobody = ~0u;

// FIFO (producer → consumer, lane, fifo).
struct Flow {
  uint64_t sent = 0, received = 0;
  bool credited = false;  // its consumer returns a credit per slot
  uint32_t waiting_consumer = kNobody, waiting_producer = kNobody;
  // In one piece, for the cache: per slot its message's arrival and the time it was freed, then the slots' bytes.
  std::vector<double> memory;
  double& arrival(uint64_t slot) { return memory[2 * slot]; }
  double& freed(uint64_t slot) { return memory[2 * slot + 1]; }
  std::byte* bytes(uint32_t depth, uint64_t offset) {
    return reinterpret_cast<std::byte*>(memory.data() + 2 * depth) + offset;
  }
};

// A ready or done word.
struct Mark {
  bool set = false;
  double time = 0;
  uint32_t waiting = kNobody;
};

struct Runner {
  uint32_t rank, lane, index;
  uint32_t step = 0, end = 0, body_first = 0, body_end = 0;
  uint32_t round = 0;
  double time = 0;
};

class Scale {
 public:
  explicit Scale(const ScaleCase& scale) : scale_(scale), size_(bytes_of(scale.collective.type)) {}
  ScaleReport run();

 private:
  void resolve_refs(uint32_t rank);
  void credit_rule(uint32_t rank);
  void start_streams(uint32_t rank);
  uint32_t flow_index(uint32_t producer, uint32_t consumer, uint32_t lane, uint32_t which);
  uint32_t mark_index(uint32_t from, uint32_t to, uint32_t lane, uint32_t which);
  bool is_direct(uint32_t rank) const { return !scale_.direct.empty() && scale_.direct[rank]; }
  bool inbox_like(const Ref& ref) const {
    return ref.place == Place::kInbox ||
           ((ref.place == Place::kPeerInput || ref.place == Place::kPeerOutput) && !is_direct(ref.peer));
  }
  // Index of the flow or mark that `k` of the rank's refs leads to.
  uint32_t target(const Runner& runner, uint32_t ref) const {
    return targets_[runner.rank][runner.lane * scale_.plans[runner.rank]->refs().size() + ref];
  }
  void run_stream(uint32_t id);
  bool may_go(uint32_t id, const Step& step);
  bool wait_message(uint32_t id, Flow& flow);
  bool wait_slot(uint32_t id, Flow& flow);
  bool wait_mark(uint32_t id, Mark& mark);
  void carry_out(Runner& runner, const Step& step);
  void put(Runner& runner, const Step& step, uint32_t k, const Piece& piece, uint64_t bytes);
  const std::byte* source_of(const Runner& runner, const Step& step, uint32_t k, const Piece& piece);
  std::byte* output_at(uint32_t rank, uint32_t block, const Piece& piece, uint64_t bytes);
  void send(Runner& runner, Flow& flow, uint64_t bytes);
  void set_mark(Runner& runner, Mark& mark);
  void next_step(Runner& runner);
  void wake(uint32_t& waiter) {
    if (waiter != kNobody) ready_.push_back(std::exchange(waiter, kNobody));
  }
  void fault(std::string text) {
    if (report_.verdict == Verdict::kOk) report_.verdict = Verdict::kOutOfBounds, report_.text = std::move(text);
  }

  const ScaleCase& scale_;
  const uint64_t size_;
  std::vector<Flow> flows_;
  std::vector<Mark> marks_;
  std::unordered_map<uint64_t, uint32_t> flow_at_, mark_at_;
  std::vector<std::vector<uint32_t>> targets_;
  std::vector<Runner> runners_;
  std::deque<uint32_t> ready_;
  std::vector<std::byte> value_;
  std::vector<Operand> operands_;
  uint64_t finished_ = 0;
  ScaleReport report_;
};

uint32_t Scale::flow_index(uint32_t producer, uint32_t consumer, uint32_t lane, uint32_t which) {
  const uint64_t key = ((uint64_t{producer} * scale_.nranks + consumer) * scale_.chunking.lanes + lane) * 2 + which;
  const auto [at, fresh] = flow_at_.try_emplace(key, static_cast<uint32_t>(flows_.size()));
  if (fresh) flows_.emplace_back();
  return at->second;
}

uint32_t Scale::mark_index(uint32_t from, uint32_t to, uint32_t lane, uint32_t which) {
  const uint64_t key = ((uint64_t{from} * scale_.nranks + to) * scale_.chunking.lanes + lane) * 3 + which;
  const auto [at, fresh] = mark_at_.try_emplace(key, static_cast<uint32_t>(marks_.size()));
  if (fresh) marks_.emplace_back();
  return at->second;
}

void Scale::resolve_refs(uint32_t rank) {
  const Plan& plan = *scale_.plans[rank];
  const size_t nrefs = plan.refs().size();
  std::vector<bool> is_source(nrefs);
  for (const Step& step : plan.steps()) {
    std::fill_n(is_source.begin() + step.first_ref, step.sources, true);
  }
  std::vector<uint32_t>& targets = targets_.emplace_back(nrefs * scale_.chunking.lanes);
  for (size_t i = 0; i < targets.size(); ++i) {
    const uint32_t lane = static_cast<uint32_t>(i / nrefs);
    const Ref& ref = plan.refs()[i % nrefs];
    const bool source = is_source[i % nrefs];
    if (ref.place == Place::kInput || ref.place == Place::kOutput) continue;
    if (ref.peer >= scale_.nranks || ref.fifo >= kFifosPerPair) return fault("no such peer or FIFO");
    const uint32_t from = source ? ref.peer : rank, to = source ? rank : ref.peer;
    if (inbox_like(ref)) targets[i] = flow_index(from, to, lane, ref.fifo);
    else if (ref.place == Place::kDone) targets[i] = mark_index(from, to, lane, 2);
    else if (ref.place == Place::kReady) targets[i] = mark_index(rank, ref.peer, lane, ref.fifo);
    else targets[i] = mark_index(ref.peer, rank, lane, ref.place == Place::kPeerOutput ? 1 : 0);
  }
}

void Scale::credit_rule(uint32_t rank) {
  for (const PeerUse& use : scale_.plans[rank]->peers()) {
    for (uint32_t f = 0; f < kFifosPerPair; ++f) {
      if (!credits_each_slot(use.receives[f], scale_.chunking.rounds, scale_.depth)) continue;
      for (uint32_t lane = 0; lane < scale_.chunking.lanes; ++lane) {
        flows_[flow_index(use.peer, rank, lane, f)].credited = true;
      }
    }
  }
}

void Scale::start_streams(uint32_t rank) {
  const Plan& plan = *scale_.plans[rank];
  for (uint32_t lane = 0; lane < scale_.chunking.lanes; ++lane) {
    for (uint32_t s = 0; s < plan.streams().size(); ++s) {
      const StreamView& view = plan.streams()[s];
      if (view.condition != Condition::kAlways && is_direct(rank)) continue;
      Runner runner{rank, lane, s};
      runner.step = view.first;
      runner.body_first = view.first + view.prologue;
      runner.body_end = runner.body_first + view.body;
      runner.end = runner.body_end + view.epilogue;
      ready_.push_back(static_cast<uint32_t>(runners_.size()));
      runners_.push_back(runner);
    }
  }
}

bool Scale::wait_message(uint32_t id, Flow& flow) {
  if (flow.sent == flow.received) {
    flow.waiting_consumer = id;
    return false;
  }
  Runner& runner = runners_[id];
  runner.time = std::max(runner.time, flow.arrival(flow.received % scale_.depth));
  return true;
}

bool Scale::wait_slot(uint32_t id, Flow& flow) {
  if (flow.sent < scale_.depth) return true;
  if (!flow.credited || flow.sent - flow.received >= scale_.depth) {
    flow.waiting_producer = id;
    return false;
  }
  Runner& runner = runners_[id];
  runner.time = std::max(runner.time, flow.freed(flow.sent % scale_.depth));
  return true;
}

bool Scale::wait_mark(uint32_t id, Mark& mark) {
  if (!mark.set) {
    mark.waiting = id;
    return false;
  }
  runners_[id].time = std::max(runners_[id].time, mark.time);
  return true;
}

bool Scale::may_go(uint32_t id, const Step& step) {
  const Runner& runner = runners_[id];
  const auto& refs = scale_.plans[runner.rank]->refs();
  for (uint32_t k = 0; k < uint32_t{step.sources} + step.sinks; ++k) {
    const Ref& ref = refs[step.first_ref + k];
    const bool source = k < step.sources;
    if ((ref.flags & kWait) == 0 || ref.place == Place::kInput || ref.place == Place::kOutput) continue;
    const uint32_t at = target(runner, step.first_ref + k);
    const bool goes = !inbox_like(ref) ? wait_mark(id, marks_[at])
                      : source         ? wait_message(id, flows_[at])
                                       : wait_slot(id, flows_[at]);
    if (!goes) return false;
  }
  return true;
}

const std::byte* Scale::source_of(const Runner& runner, const Step& step, uint32_t k, const Piece& piece) {
  const uint32_t index = step.first_ref + k;
  const Ref& ref = scale_.plans[runner.rank]->refs()[index];
  if (inbox_like(ref)) {
    Flow& flow = flows_[target(runner, index)];
    return flow.bytes(scale_.depth, flow.received % scale_.depth * scale_.chunking.piece * size_);
  }
  const bool output = ref.place == Place::kOutput;
  const uint32_t owner = ref.place == Place::kPeerInput ? ref.peer : runner.rank;
  const Bytes& buffer = output ? report_.outputs[owner] : (*scale_.inputs)[owner];
  const uint32_t block = block_of(step, runner.rank, owner != runner.rank);
  const uint64_t offset = output ? output_offset(scale_.chunking, block, piece)
                                 : input_offset(scale_.chunking, block, piece);
  if (piece.count != 0 && (offset + piece.count) * size_ > buffer.size()) {
    fault("reads outside a buffer");
    return nullptr;
  }
  return piece.count == 0 ? buffer.data() : buffer.data() + offset * size_;
}

std::byte* Scale::output_at(uint32_t rank, uint32_t block, const Piece& piece, uint64_t bytes) {
  const uint64_t offset = piece.count == 0 ? 0 : output_offset(scale_.chunking, block, piece) * size_;
  if (offset + bytes > report_.outputs[rank].size()) {
    fault("writes outside a buffer");
    return nullptr;
  }
  return report_.outputs[rank].data() + offset;
}

void Scale::send(Runner& runner, Flow& flow, uint64_t bytes) {
  const uint64_t slot = flow.sent % scale_.depth;
  if (flow.memory.empty()) {
    flow.memory.resize(2 * scale_.depth + (scale_.depth * scale_.chunking.piece * size_ + 7) / 8);
  }
  std::copy_n(value_.begin(), bytes, flow.bytes(scale_.depth, slot * scale_.chunking.piece * size_));
  runner.time += static_cast<double>(bytes) * scale_.beta_usec_per_byte;
  flow.arrival(slot) = runner.time + scale_.alpha_usec;
  ++flow.sent;
  wake(flow.waiting_consumer);
}

void Scale::set_mark(Runner& runner, Mark& mark) {
  mark.set = true;
  mark.time = runner.time + scale_.alpha_usec;
  wake(mark.waiting);
}

void Scale::put(Runner& runner, const Step& step, uint32_t k, const Piece& piece, uint64_t bytes) {
  const uint32_t index = step.first_ref + k;
  const Ref& ref = scale_.plans[runner.rank]->refs()[index];
  if (inbox_like(ref)) return send(runner, flows_[target(runner, index)], bytes);
  if (ref.place == Place::kReady || ref.place == Place::kDone) return set_mark(runner, marks_[target(runner, index)]);
  const uint32_t owner = ref.place == Place::kPeerOutput ? ref.peer : runner.rank;
  std::byte* out = output_at(owner, block_of(step, runner.rank, owner != runner.rank), piece, bytes);
  if (out != nullptr) std::copy_n(value_.begin(), bytes, out);
  if (owner != runner.rank) runner.time += static_cast<double>(bytes) * scale_.beta_usec_per_byte;
}

void Scale::carry_out(Runner& runner, const Step& step) {
  const Plan& plan = *scale_.plans[runner.rank];
  const Piece piece = piece_of(scale_.chunking, step.block, runner.lane, runner.round);
  operands_.clear();
  for (uint32_t k = 0; k < step.sources; ++k) {
    const Ref& ref = plan.refs()[step.first_ref + k];
    if (ref.place == Place::kDone) continue;
    const std::byte* data = source_of(runner, step, k, piece);
    if (report_.verdict != Verdict::kOk) return;
    operands_.push_back({data, (ref.flags & kRaw) != 0});
    const bool sent_from = ref.place == Place::kInput || (ref.place == Place::kPeerInput && !inbox_like(ref));
    if (!sent_from || scale_.collective.reduce != ReduceOp::kPreMulSum) continue;
    const uint32_t owner = ref.place == Place::kInput ? runner.rank : ref.peer;
    operands_.back().scalar = reinterpret_cast<const std::byte*>(&scale_.scalars[owner]);
  }
  const uint64_t bytes = operands_.empty() ? 0 : piece.count * size_;
  if (value_.size() < bytes) value_.resize(bytes);
  const Collective& collective = scale_.collective;
  const ReduceOp reduce = reduces(collective.operation) ? collective.reduce : ReduceOp::kNone;
  if (!operands_.empty()) {
    reduce_piece(Reduction{collective.type, reduce, scale_.nranks}, operands_, (step.flags & kFinal) != 0, piece.count,
                 value_.data());
  }
  for (uint32_t k = step.sources; k < uint32_t{step.sources} + step.sinks; ++k) put(runner, step, k, piece, bytes);
  for (uint32_t k = 0; k < step.sources; ++k) {
    if (!inbox_like(plan.refs()[step.first_ref + k])) continue;
    Flow& flow = flows_[target(runner, step.first_ref + k)];
    flow.freed(flow.received % scale_.depth) = runner.time + scale_.alpha_usec;
    ++flow.received;
    wake(flow.waiting_producer);
  }
}

void Scale::next_step(Runner& runner) {
  if (++runner.step != runner.body_end || runner.body_first == runner.body_end) return;
  if (++runner.round < scale_.chunking.rounds) runner.step = runner.body_first;
  else runner.round = 0;
}

void Scale::run_stream(uint32_t id) {
  Runner& runner = runners_[id];
  const Plan& plan = *scale_.plans[runner.rank];
  while (runner.step != runner.end && report_.verdict == Verdict::kOk) {
    const Step& step = plan.steps()[runner.step];
    if (!may_go(id, step)) return;
    carry_out(runner, step);
    next_step(runner);
    ++report_.steps;
  }
  ++finished_;
  report_.usec = std::max(report_.usec, runner.time);
}

ScaleReport Scale::run() {
  for (uint32_t rank = 0; rank < scale_.nranks; ++rank) {
    report_.outputs.emplace_back(extent_of(scale_.collective, scale_.nranks, rank).output_elements * size_);
    resolve_refs(rank);
    start_streams(rank);
  }
  for (uint32_t rank = 0; rank < scale_.nranks; ++rank) credit_rule(rank);
  while (!ready_.empty() && report_.verdict == Verdict::kOk) {
    const uint32_t id = ready_.front();
    ready_.pop_front();
    run_stream(id);
  }
  if (report_.verdict != Verdict::kOk) return std::move(report_);
  if (finished_ != runners_.size()) {
    report_.verdict = Verdict::kDeadlock;
    report_.text = fmt::format("{} of {} streams are done", finished_, runners_.size());
    return std::move(report_);
  }
  for (const Flow& flow : flows_) {
    if (flow.sent == flow.received) continue;
    report_.verdict = Verdict::kLeftOver;
    report_.text = fmt::format("{} messages sent, {} consumed", flow.sent, flow.received);
  }
  return std::move(report_);
}

}  // namespace

ScaleReport run_scaled(const ScaleCase& scale) { return Scale(scale).run(); }

}  // namespace talaria::sim
