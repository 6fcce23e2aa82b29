// The ends of things: launches (the user gives buffers away and takes them back) and operations (credits and implied
// acknowledgements, design §6 lines 5 and 6).
#include "sim/machine.h"

#include <fmt/core.h>

#include <algorithm>

namespace talaria::sim {
namespace {

bool uses_ready_words(const Plan& plan) {
  return std::any_of(plan.refs().begin(), plan.refs().end(), [](const Ref& ref) {
    return ref.place == Place::kReady || ref.place == Place::kDone || ref.place == Place::kPeerInput ||
           ref.place == Place::kPeerOutput;
  });
}

}  // namespace

Machine::Machine(const Scenario& scenario, uint64_t seed) : scenario_(scenario), random_(seed) {
  const uint32_t n = scenario.nranks, lanes = scenario.lanes;
  for (uint32_t s = 0; s < n * lanes * kMaxStreams; ++s) {
    streams_.push_back(Stream{});
    Stream& stream = streams_.back();
    stream.rank = s / kMaxStreams / lanes;
    stream.lane = s / kMaxStreams % lanes;
    stream.index = s % kMaxStreams;
    stream.thread = s;
    stream.clock.tick(s);
  }
  lanes_.resize(size_t{n} * lanes);
  ranks_.resize(n);
  ready_.resize(size_t{n} * n * lanes * 2);
  done_.resize(size_t{n} * n * lanes);
  arenas_.resize(scenario.ops.size() * n);
  const uint32_t direct_percent = static_cast<uint32_t>(below(random_, 3)) * 50;
  for (uint32_t op = 0; op < scenario.ops.size(); ++op) {
    for (uint32_t rank = 0; rank < n; ++rank) {
      const Plan* plan = scenario.ops[op].plans[rank].get();
      uses_ready_.push_back(plan != nullptr && uses_ready_words(*plan));
      if (plan != nullptr) arena(op, rank).lay_out(scenario.ops[op], rank);
      for (uint32_t lane = 0; lane < lanes; ++lane) {
        const bool input = below(random_, 100) < direct_percent, output = below(random_, 100) < direct_percent;
        decisions_.push_back(static_cast<uint8_t>(input | output << 1));
      }
    }
  }
  place_.resize(rank_actor(n));
  for (uint32_t rank = 0; rank < n; ++rank) slow_.push_back(below(random_, 3) == 0);
  eagerness_ = below(random_, 3) == 0 ? 5 : below(random_, 2) == 0 ? 50 : 95;
  flags_first_ = below(random_, 3) == 0;
}

bool Machine::is_direct(uint32_t op, uint32_t rank, uint32_t lane, bool output) const {
  return (decisions_[(op * scenario_.nranks + rank) * scenario_.lanes + lane] >> (output ? 1 : 0) & 1) != 0;
}

void Machine::act_rank(uint32_t rank) {
  sleep(rank_actor(rank));
  RankState& state = ranks_[rank];
  if (state.in_launch) end_launch(rank);
  if (fault_) return;
  if (state.launch == scenario_.programs[rank].size()) state.done = true;
  else begin_launch(rank);
}

void Machine::begin_launch(uint32_t rank) {
  RankState& state = ranks_[rank];
  const ThreadId user = static_cast<ThreadId>(streams_.size()) + rank;
  state.user.tick(user);
  state.in_launch = true;
  for (uint32_t op : launch_of(rank).ops) arena(op, rank).open(Observer{user, state.user});
  state.open_lanes = scenario_.lanes;
  for (uint32_t lane = 0; lane < scenario_.lanes; ++lane) {
    Lane& place = lanes_[rank * scenario_.lanes + lane];
    place.next_op = 0;
    place.finished = false;
    place.running = false;
    for (uint32_t s = 0; s < kMaxStreams; ++s) {
      Stream& stream = streams_[(rank * scenario_.lanes + lane) * kMaxStreams + s];
      stream.clock.join(state.user);
      stream.next_op = 0;
    }
    wake(lane_actor(rank, lane));
  }
}

void Machine::end_launch(uint32_t rank) {
  RankState& state = ranks_[rank];
  for (const Stream& stream : streams_) {
    if (stream.rank == rank) state.user.join(stream.clock);
  }
  const ThreadId user = static_cast<ThreadId>(streams_.size()) + rank;
  for (uint32_t op : launch_of(rank).ops) {
    const auto verdict = arena(op, rank).close(scenario_.ops[op], rank, Observer{user, state.user});
    if (verdict) {
      fault(*verdict, nullptr, fmt::format("buffers of rank {} after {}", rank, scenario_.ops[op].text));
      return;
    }
  }
  state.in_launch = false;
  ++state.launch;
}

// Stream positions for `op`; false when this stream has nothing to do in it.
bool Machine::enter(Stream& stream, uint32_t op) {
  const Op& spec = scenario_.ops[op];
  const Plan* plan = spec.plans[stream.rank].get();
  if (plan == nullptr || stream.lane >= spec.chunking.lanes || stream.index >= plan->streams().size()) return false;
  const StreamView& view = plan->streams()[stream.index];
  if (view.condition != Condition::kAlways &&
      is_direct(op, stream.rank, stream.lane, view.condition == Condition::kOutputStaged)) {
    return false;
  }
  stream.op = op;
  stream.position = 0;
  stream.stage = 0;
  stream.length = view.prologue + uint64_t{view.body} * spec.chunking.rounds + view.epilogue;
  return stream.length != 0;
}

void Machine::begin_op(Stream& leader, uint32_t op) {
  leader.op = op;
  for (const PeerUse& use : plan_of(leader).peers()) {
    for (uint32_t f = 0; f < kFifosPerPair; ++f) {
      Fifo& outgoing = fifo(leader.rank, use.peer, leader, f);
      outgoing.sent_at_start = outgoing.sent;
      if ((use.credit_at_start >> f & 1) == 0) continue;
      Fifo& incoming = fifo(use.peer, leader.rank, leader, f);
      issue_word(leader, incoming.credit, incoming.received, use.peer, false);
    }
  }
}

void Machine::end_op(Stream& leader, uint32_t op) {
  leader.op = op;
  for (const PeerUse& use : plan_of(leader).peers()) {
    for (uint32_t f = 0; f < kFifosPerPair && use.implied_ack != 0; ++f) {
      Fifo& outgoing = fifo(leader.rank, use.peer, leader, f);
      outgoing.acked = outgoing.sent_at_start;
    }
  }
}

// Collectives: one operation begins or ends. Point-to-point: the whole list does.
void Machine::act_lane(uint32_t rank, uint32_t lane) {
  sleep(lane_actor(rank, lane));
  Lane& state = lanes_[rank * scenario_.lanes + lane];
  Stream* streams = &streams_[(rank * scenario_.lanes + lane) * kMaxStreams];
  const Launch& launch = launch_of(rank);
  if (state.running) {
    state.running = false;
    VectorClock joined = streams[0].clock;
    for (uint32_t s = 1; s < kMaxStreams; ++s) joined.join(streams[s].clock);
    for (uint32_t s = 0; s < kMaxStreams; ++s) streams[s].clock = joined;
    if (launch.join) end_op(streams[0], launch.ops[state.next_op - 1]);
  }
  while (launch.join && state.next_op < launch.ops.size() &&
         lane >= scenario_.ops[launch.ops[state.next_op]].chunking.lanes) {
    ++state.next_op;
  }
  if (state.next_op == launch.ops.size()) {
    state.finished = true;
    if (--ranks_[rank].open_lanes == 0) wake(rank_actor(rank));
    return;
  }
  state.running = true;
  state.open_streams = 0;
  const uint32_t op = launch.ops[state.next_op];
  state.next_op = launch.join ? state.next_op + 1 : launch.ops.size();
  if (launch.join) {
    begin_op(streams[0], op);
    if (uses_ready_[op * scenario_.nranks + rank]) ++state.uses;
  }
  for (uint32_t s = 0; s < kMaxStreams; ++s) {
    streams[s].length = 0;
    if (launch.join) {
      // What the leader did at the start is ordered before every stream of the lane.
      streams[s].clock.join(streams[0].clock);
      if (!enter(streams[s], op)) continue;
    }
    streams[s].active = true;
    ++state.open_streams;
    wake(streams[s].thread);
  }
  if (state.open_streams == 0) wake(lane_actor(rank, lane));
}

void Machine::finish_stream(Stream& stream) {
  stream.active = false;
  sleep(stream.thread);
  if (--lane_of(stream).open_streams == 0) wake(lane_actor(stream.rank, stream.lane));
}

void Machine::act_stream(Stream& stream) {
  const Launch& launch = launch_of(stream.rank);
  if (stream.position < stream.length) {
    if (advance(stream) == Progress::kBlocked) sleep(stream.thread);
    return;
  }
  if (launch.join) return finish_stream(stream);
  if (stream.length != 0) end_op(stream, stream.op);
  stream.length = stream.position = 0;
  while (stream.next_op < launch.ops.size()) {
    const uint32_t op = launch.ops[stream.next_op++];
    if (!enter(stream, op)) continue;
    begin_op(stream, op);
    return;
  }
  finish_stream(stream);
}

void Machine::fault(Verdict verdict, const Stream* stream, const std::string& what) {
  if (fault_) return;
  std::string text = what;
  if (stream != nullptr) {
    text = fmt::format("rank {} lane {} stream {} in {}, step {}: {}", stream->rank, stream->lane, stream->index,
                       scenario_.ops[stream->op].text, stream->position, what);
  }
  fault_ = Report{verdict, text, actions_};
}

}  // namespace talaria::sim
