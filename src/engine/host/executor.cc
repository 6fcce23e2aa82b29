#include "engine/host/executor.h"

#include <algorithm>
#include <cstring>

#include "base/os.h"
#include "engine/host/move.h"
#include "transport/ready.h"

namespace talaria {
namespace {

constexpr uint32_t kLane = 0;  // CPU ranks use one lane

bool is_peer_buffer(const Ref& ref) { return ref.place == Place::kPeerInput || ref.place == Place::kPeerOutput; }

// Peers' uses are in order of rank.
const PeerUse& use_of(const Work& work, uint32_t peer) {
  const std::span uses(work.plan.peers, work.plan.npeers);
  return *std::ranges::lower_bound(uses, peer, {}, &PeerUse::peer);
}

uint32_t steps_of(const StreamView& view) { return view.prologue + view.body + view.epilogue; }

constexpr uint32_t kScalarWord = 2;  // of the ready words

// PreMulSum multiplies what comes from a send buffer, mine or a peer's, by its owner's scalar: whatever is sent onward
// has been multiplied. So a plan need not know of it.
bool multiplies(const Work& work) { return static_cast<ReduceOp>(work.reduce) == ReduceOp::kPreMulSum; }

uint64_t own_scalar(const Work& work) {
  if (work.scalar_address == nullptr) return work.scalar;
  uint64_t scalar = 0;
  std::memcpy(&scalar, work.scalar_address, bytes_of(static_cast<DataType>(work.type)));
  return scalar;
}

size_t element_bytes(const Work& work) { return bytes_of(static_cast<DataType>(work.type)); }

uint64_t* word_at(std::byte* mailbox, uint64_t offset) { return reinterpret_cast<uint64_t*>(mailbox + offset); }

std::atomic_ref<uint64_t> word(std::byte* mailbox, uint64_t offset) {
  return std::atomic_ref<uint64_t>(*word_at(mailbox, offset));
}

}  // namespace

void HostExecutor::begin(std::span<const Work> works) {
  works_ = works;
  segment_ = segment_end_ = 0;
  enter_segment();
}

// A segment is what streams may walk through without meeting: one collective, or consecutive point-to-point works.
void HostExecutor::enter_segment() {
  segment_ = segment_end_;
  if (done()) return;
  segment_end_ = segment_ + 1;
  streams_ = kMaxStreams;
  if (works_[segment_].join) {
    start_work(works_[segment_]);
    streams_ = works_[segment_].plan.nstreams;
  } else {
    while (segment_end_ < works_.size() && !works_[segment_end_].join) ++segment_end_;
  }
  for (Cursor& cursor : cursors_) cursor = Cursor{segment_, false, false, 0, 0};
}

void HostExecutor::start_work(const Work& work) {
  const MailboxLayout& layout = rank_.layout;
  if (work.direct) ++rank_.uses;
  sent_at_start_.clear();
  for (uint32_t i = 0; i < work.plan.npeers; ++i) {
    const PeerUse& use = work.plan.peers[i];
    for (uint32_t f = 0; f < kFifosPerPair; ++f) {
      const FifoState& state = rank_.fifos[work.channel][layout.fifo_index(work.channel, use.peer, kLane, f)];
      sent_at_start_.push_back(state.sent);
      if ((use.credit_at_start >> f & 1) == 0) continue;
      // pairs with the credit load in arrived (sink) at the peer
      Endpoint credit;
      credit.source = true;
      const uint64_t offset = layout.credit_offset(work.channel, rank_.rank, kLane, f);
      credit.published = word_at(rank_.peers[use.peer].mailbox, offset);
      credit.value = state.received;
      publish(rank_.peers[use.peer], credit);
    }
  }
}

void HostExecutor::finish_work(const Work& work) {
  for (uint32_t i = 0; i < work.plan.npeers; ++i) {
    const PeerUse& use = work.plan.peers[i];
    if (!use.implied_ack) continue;
    for (uint32_t f = 0; f < kFifosPerPair; ++f) {
      FifoState& state = rank_.fifos[work.channel][rank_.layout.fifo_index(work.channel, use.peer, kLane, f)];
      state.acked = std::max(state.acked, sent_at_start_[i * kFifosPerPair + f]);
    }
  }
  if (work.flip && work.output != nullptr) *static_cast<std::byte*>(work.output) ^= std::byte{1};
}

bool HostExecutor::advance() {
  if (done()) return false;
  bool moved = false;
  bool finished = true;
  for (uint32_t s = 0; s < streams_; ++s) {
    moved |= advance_stream(s);
    finished &= cursors_[s].work == segment_end_;
  }
  if (!finished) return moved;
  for (size_t w = segment_; w < segment_end_; ++w) {
    if (works_[w].join) finish_work(works_[w]);
    else if (works_[w].flip && works_[w].output != nullptr) *static_cast<std::byte*>(works_[w].output) ^= std::byte{1};
  }
  enter_segment();
  return true;
}

bool HostExecutor::runnable(const Work& work, uint32_t stream) const {
  if (stream >= work.plan.nstreams || steps_of(work.plan.streams[stream]) == 0) return false;
  switch (work.plan.streams[stream].condition) {
    case Condition::kInputStaged: return (work.staged & 1) != 0;
    case Condition::kOutputStaged: return (work.staged & 2) != 0;
    default: return true;
  }
}

bool HostExecutor::advance_stream(uint32_t stream) {
  Cursor& cursor = cursors_[stream];
  bool moved = false;
  while (cursor.work < segment_end_) {
    const Work& work = works_[cursor.work];
    if (runnable(work, stream)) {
      if (!cursor.started && !work.join) start_work(work);
      cursor.started = true;
      moved |= advance_cursor(work, stream);
      if (cursor.step != steps_of(work.plan.streams[stream])) return moved;
    }
    cursor = Cursor{cursor.work + 1, false, false, 0, 0};
  }
  return moved;
}

// Runs steps until one cannot go on, or the stream is at its end (cursor.step == number of steps).
bool HostExecutor::advance_cursor(const Work& work, uint32_t stream) {
  Cursor& cursor = cursors_[stream];
  const StreamView& view = work.plan.streams[stream];
  const uint32_t steps = steps_of(view), body_end = view.prologue + view.body;
  bool moved = false;
  while (cursor.step < steps) {
    const Step& step = work.plan.steps[view.first + cursor.step];
    if (!cursor.resolved) resolve_step(work, step, stream);
    if (!all_arrived(work, step, stream) || !begin_touching(work, step)) return moved;
    const bool ran = run_step(work, step, stream);
    end_touching(work);
    if (!ran) return moved;
    moved = true;
    cursor.resolved = false;
    if (++cursor.step == body_end && view.body > 0 && ++cursor.round < work.chunking.rounds) {
      cursor.step = view.prologue;
    }
  }
  return moved;
}

void HostExecutor::resolve_step(const Work& work, const Step& step, uint32_t stream) {
  const Piece piece = piece_of(work.chunking, step.block, kLane, cursors_[stream].round);
  const uint64_t element = element_bytes(work);
  const auto offset_of = [&](Place place) {
    const uint32_t block = block_of(step, rank_.rank, place == Place::kPeerInput || place == Place::kPeerOutput);
    const bool input = place == Place::kInput || place == Place::kPeerInput;
    return (input ? input_offset(work.chunking, block, piece) : output_offset(work.chunking, block, piece)) * element;
  };
  std::vector<Endpoint>& endpoints = endpoints_[stream];
  endpoints.clear();
  for (uint32_t k = 0; k < uint32_t{step.sources} + step.sinks; ++k) {
    const Ref& ref = work.plan.refs[step.first_ref + k];
    Endpoint& endpoint = endpoints.emplace_back();
    endpoint.source = k < step.sources;
    endpoint.bytes = piece.count * element;
    endpoint.offset = offset_of(ref.place);
    resolve(work, ref, endpoint);
  }
  cursors_[stream].resolved = true;
}

void HostExecutor::resolve(const Work& work, const Ref& ref, Endpoint& endpoint) {
  switch (ref.place) {
    case Place::kInput:
      endpoint.data = static_cast<std::byte*>(const_cast<void*>(work.input)) + endpoint.offset;
      endpoint.scaled = multiplies(work);
      if (endpoint.scaled) endpoint.scalar = own_scalar(work);
      break;
    case Place::kOutput: endpoint.data = static_cast<std::byte*>(work.output) + endpoint.offset; break;
    case Place::kInbox: resolve_message(work, ref, endpoint); break;
    case Place::kReady: break;
    case Place::kDone: resolve_done(ref, endpoint); break;
    case Place::kPeerInput:
    case Place::kPeerOutput:
      // pairs with tell_ready at the peer
      endpoint.awaited = word_at(rank_.mailbox, rank_.layout.ready_offset(ref.peer, kLane, endpoint.source ? 0 : 1));
      endpoint.ready = true;
      break;
  }
}

void HostExecutor::resolve_done(const Ref& ref, Endpoint& endpoint) const {
  // The two pair with each other: the peer's store with this rank's load.
  if (endpoint.source) {
    if ((ref.flags & kWait) != 0) endpoint.awaited = word_at(rank_.mailbox, rank_.layout.done_offset(ref.peer, kLane));
    endpoint.least = rank_.uses;
  } else if ((ref.flags & kSignal) != 0) {
    endpoint.published = word_at(rank_.peers[ref.peer].mailbox, rank_.layout.done_offset(rank_.rank, kLane));
    endpoint.value = rank_.uses;
  }
}

void HostExecutor::resolve_message(const Work& work, const Ref& ref, Endpoint& endpoint) {
  const MailboxLayout& layout = rank_.layout;
  const uint32_t depth = layout.channels[work.channel].depth;
  std::byte* const peer = rank_.peers[ref.peer].mailbox;
  FifoState& fifo = rank_.fifos[work.channel][layout.fifo_index(work.channel, ref.peer, kLane, ref.fifo)];
  const bool waits = (ref.flags & kWait) != 0, signals = (ref.flags & kSignal) != 0;
  endpoint.fifo = &fifo;
  if (endpoint.source) {
    const MessagePlace place = place_of(work, ref, ref.peer, fifo.received, endpoint.bytes);
    endpoint.data = rank_.mailbox + place.payload;
    // pairs with the store of the same word by the peer's step that has this message as a sink
    if (waits) endpoint.awaited = word_at(rank_.mailbox, place.published);
    endpoint.least = endpoint.value = fifo.received + 1;
    if (signals && credits_each_slot(use_of(work, ref.peer).receives[ref.fifo], work.chunking.rounds, depth)) {
      // pairs with the load of the same word, below, at the peer
      endpoint.published = word_at(peer, layout.credit_offset(work.channel, rank_.rank, kLane, ref.fifo));
    }
    return;
  }
  const MessagePlace place = place_of(work, ref, rank_.rank, fifo.sent, endpoint.bytes);
  endpoint.data = peer + place.payload;
  endpoint.value = fifo.sent + 1;
  if (signals) endpoint.published = word_at(peer, place.published);
  if (!waits || fifo.sent - fifo.acked < depth) return;
  // pairs with the credit stores of the peer: start_work, and above
  endpoint.awaited = word_at(rank_.mailbox, layout.credit_offset(work.channel, ref.peer, kLane, ref.fifo));
  endpoint.least = fifo.sent + 1 - depth;
}

// A line shows the tag of the message `depth` before until it is published; tags, like tails, only grow.
HostExecutor::MessagePlace HostExecutor::place_of(const Work& work, const Ref& ref, uint32_t producer,
                                                  uint64_t message, uint64_t bytes) const {
  const MailboxLayout& layout = rank_.layout;
  const uint32_t line_bytes = layout.channels[work.channel].line_bytes;
  const uint64_t slot = layout.slot_offset(work.channel, producer, kLane, ref.fifo, message);
  if (line_bytes == 0) return {slot, layout.tail_offset(work.channel, producer, kLane, ref.fifo)};
  const uint64_t line = layout.line_offset(work.channel, producer, ref.fifo, message);
  return {bytes <= line_bytes - kLineTagBytes ? line + kLineTagBytes : slot, line};
}

bool HostExecutor::all_arrived(const Work& work, const Step& step, uint32_t stream) {
  bool all = true;
  for (uint32_t k = 0; k < endpoints_[stream].size(); ++k) {
    Endpoint& endpoint = endpoints_[stream][k];
    if (endpoint.awaited != nullptr) all &= arrived(work, work.plan.refs[step.first_ref + k], endpoint);
  }
  return all;
}

bool HostExecutor::arrived(const Work& work, const Ref& ref, Endpoint& endpoint) {
  if (endpoint.ready && !take_ready(work, ref, endpoint)) return false;
  if (endpoint.awaited == nullptr) return true;
  const uint64_t seen = std::atomic_ref(*endpoint.awaited).load(std::memory_order_acquire);
  if (seen < endpoint.least) return false;
  endpoint.awaited = nullptr;
  if (!endpoint.source && endpoint.fifo != nullptr) endpoint.fifo->acked = std::max(endpoint.fifo->acked, seen);
  return true;
}

// Once the peer's ready word of this use is here: its buffer, or else the message it sends or takes instead.
bool HostExecutor::take_ready(const Work& work, const Ref& ref, Endpoint& endpoint) {
  const ReadyWord ready{std::atomic_ref(endpoint.awaited[0]).load(std::memory_order_acquire),
                        std::atomic_ref(endpoint.awaited[1]).load(std::memory_order_acquire)};
  if (!ready_matches(ready, rank_.uses)) return false;
  const bool direct = ready_kind(ready) == ReadyKind::kAddress;
  if (direct && endpoint.source && multiplies(work) && !take_scalar(ref, endpoint)) return false;
  endpoint.ready = false;
  endpoint.awaited = nullptr;
  if (direct) {
    endpoint.data = reinterpret_cast<std::byte*>(ready_address(ready)) + endpoint.offset;
    endpoint.process = rank_.peers[ref.peer].process;
  } else {
    resolve_message(work, ref, endpoint);
  }
  return true;
}

// The scalar of a peer whose input is read in place.
bool HostExecutor::take_scalar(const Ref& ref, Endpoint& endpoint) const {
  const uint64_t offset = rank_.layout.ready_offset(ref.peer, kLane, kScalarWord);
  const ReadyWord told{word(rank_.mailbox, offset).load(std::memory_order_acquire),
                       word(rank_.mailbox, offset + 8).load(std::memory_order_acquire)};
  if (!ready_matches(told, rank_.uses)) return false;
  endpoint.scaled = true;
  endpoint.scalar = ready_scalar(told);
  return true;
}

// Before a step that may touch peers' buffers: says so, then looks whether any of them has been revoked. One of the two
// sides sees the other: pairs with revoke_buffers at the peers (both sequentially consistent).
bool HostExecutor::begin_touching(const Work& work, const Step& step) {
  if (!work.direct) return true;
  word(rank_.mailbox, rank_.layout.touching).store(1, std::memory_order_seq_cst);
  for (uint32_t k = 0; k < uint32_t{step.sources} + step.sinks; ++k) {
    const Ref& ref = work.plan.refs[step.first_ref + k];
    if (!ref_revoked(work, ref)) continue;
    end_touching(work);
    return false;
  }
  return true;
}

bool HostExecutor::ref_revoked(const Work& work, const Ref& ref) const {
  if (!work.direct || !is_peer_buffer(ref)) return false;
  return word(rank_.peers[ref.peer].mailbox, rank_.layout.revoked).load(std::memory_order_seq_cst) != 0;
}

void HostExecutor::end_touching(const Work& work) {
  // pairs with the load in revoke_buffers at the peers
  if (work.direct) word(rank_.mailbox, rank_.layout.touching).store(0, std::memory_order_release);
}

bool HostExecutor::revoke_buffers() {
  if (done() || !works_[segment_].direct) return true;
  word(rank_.mailbox, rank_.layout.revoked).store(1, std::memory_order_seq_cst);
  for (uint32_t p = 0; p < rank_.nranks; ++p) {
    if (p == rank_.rank) continue;
    if (word(rank_.peers[p].mailbox, rank_.layout.touching).load(std::memory_order_seq_cst) == 0) continue;
    const int process = rank_.peers[p].process;  // one that ended inside a step touches nothing any more
    if (process == 0 || !process_ended(process)) return false;
  }
  return true;
}

bool HostExecutor::move_remotely(const Movement& movement, const Step& step, uint32_t stream) {
  RemoteMovement remote{movement, {}, {}};
  const std::vector<Endpoint>& endpoints = endpoints_[stream];
  for (uint32_t k = 0; k < endpoints.size(); ++k) {
    if (endpoints[k].data == nullptr) continue;
    (k < step.sources ? remote.source_owners : remote.sink_owners).push_back(endpoints[k].process);
  }
  unreached_ = remote_mover_.move(remote);
  return unreached_.error == 0;
}

bool HostExecutor::run_step(const Work& work, const Step& step, uint32_t stream) {
  const Ref* refs = work.plan.refs + step.first_ref;
  const std::vector<Endpoint>& endpoints = endpoints_[stream];
  const Piece piece = piece_of(work.chunking, step.block, kLane, cursors_[stream].round);
  Movement movement{static_cast<DataType>(work.type), static_cast<ReduceOp>(work.reduce), work.avg_ranks,
                    (step.flags & kFinal) != 0, piece.count, {}, {}, {}, {}};
  bool remote = false;
  const bool premultiplied = multiplies(work);
  for (uint32_t k = 0; k < endpoints.size(); ++k) {
    if (endpoints[k].data == nullptr) continue;
    remote |= endpoints[k].process != 0;
    const bool raw = premultiplied ? endpoints[k].scaled : (refs[k].flags & kRaw) != 0;
    if (k < step.sources) movement.add_source(endpoints[k].data, raw, endpoints[k].scalar);
    else movement.add_sink(endpoints[k].data);
  }
  if (movement.sources.size() > 0 && piece.count > 0) {
    if (!remote) move(movement);
    else if (!move_remotely(movement, step, stream)) return false;
  }
  // Now that the data has moved: publish messages, return credits, raise flags, count.
  for (uint32_t k = 0; k < endpoints.size(); ++k) {
    const Endpoint& endpoint = endpoints[k];
    if (endpoint.published != nullptr) publish(rank_.peers[refs[k].peer], endpoint);
    if (endpoint.fifo != nullptr) ++(endpoint.source ? endpoint.fifo->received : endpoint.fifo->sent);
    if (refs[k].place == Place::kReady && (refs[k].flags & kSignal) != 0) tell_ready(work, refs[k]);
  }
  return true;
}

void HostExecutor::publish(const PeerHandle& peer, const Endpoint& endpoint) {
  if (peer.kind != PeerKind::kProxied) {
    std::atomic_ref(*endpoint.published).store(endpoint.value, std::memory_order_release);
    return;
  }
  // `peer.mailbox` is a mirror: the transport does at the peer what was done here, at the same offsets.
  const auto offset_of = [&](const void* place) {
    return static_cast<uint64_t>(static_cast<const std::byte*>(place) - peer.mailbox);
  };
  const uint64_t bytes = endpoint.source ? 0 : endpoint.bytes;
  rank_.puts[static_cast<size_t>(&peer - rank_.peers.data())].push_back(
      {bytes > 0 ? offset_of(endpoint.data) : 0, bytes, offset_of(endpoint.published), endpoint.value});
}

void HostExecutor::tell_ready(const Work& work, const Ref& ref) {
  const bool input = ref.fifo == 0;
  const bool staged = (work.staged & (input ? 1 : 2)) != 0;
  const void* buffer = input ? work.input : work.output;
  const ReadyWord ready = make_ready(rank_.uses, staged ? ReadyKind::kStaged : ReadyKind::kAddress,
                                     reinterpret_cast<uint64_t>(buffer));
  std::byte* const peer = rank_.peers[ref.peer].mailbox;
  const uint64_t offset = rank_.layout.ready_offset(rank_.rank, kLane, ref.fifo);
  // pairs with take_ready at the peer
  word(peer, offset).store(ready.half0, std::memory_order_release);
  word(peer, offset + 8).store(ready.half1, std::memory_order_release);
  if (!input || !multiplies(work)) return;
  const ReadyWord scalar = make_ready_scalar(rank_.uses, own_scalar(work));
  const uint64_t beside = rank_.layout.ready_offset(rank_.rank, kLane, kScalarWord);
  // pairs with take_scalar at the peer
  word(peer, beside).store(scalar.half0, std::memory_order_release);
  word(peer, beside + 8).store(scalar.half1, std::memory_order_release);
}

// A stream that is stuck has resolved its next step.
std::vector<HostWait> HostExecutor::current_waits() const {
  std::vector<HostWait> waits;
  for (uint32_t s = 0; s < streams_ && !done(); ++s) {
    const Cursor& cursor = cursors_[s];
    if (cursor.work >= segment_end_ || !cursor.resolved) continue;
    const Work& work = works_[cursor.work];
    const Step& step = work.plan.steps[work.plan.streams[s].first + cursor.step];
    for (uint32_t k = 0; k < uint32_t{step.sources} + step.sinks; ++k) {
      const Ref& ref = work.plan.refs[step.first_ref + k];
      const bool unreached = unreached_.error != 0 && endpoints_[s][k].process == unreached_.process;
      if (endpoints_[s][k].awaited == nullptr && !unreached && !ref_revoked(work, ref)) continue;
      waits.push_back({ref.peer, ref.place, k >= step.sources, work.sequence, work.operation, cursor.step,
                       cursor.round});
    }
  }
  return waits;
}

}  // namespace talaria
