#include "engine/host/executor.h"

#include "engine/host/move.h"
#include "transport/ready.h"

namespace talaria {
namespace {

constexpr uint32_t kLane = 0;  // CPU ranks use one lane

bool is_data(Place place) { return place != Place::kReady && place != Place::kDone; }
bool is_own(Place place) { return place == Place::kInput || place == Place::kOutput; }

uint32_t steps_of(const StreamView& view) { return view.prologue + view.body + view.epilogue; }

size_t element_bytes(const Work& work) { return bytes_of(static_cast<DataType>(work.type)); }

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
  if (works_[segment_].join) {
    start_work(works_[segment_]);
  } else {
    while (segment_end_ < works_.size() && !works_[segment_end_].join) ++segment_end_;
  }
  for (Cursor& cursor : cursors_) cursor = Cursor{segment_, false, 0, 0};
}

void HostExecutor::start_work(const Work& work) {
  if (work.direct) ++rank_.uses;
  sent_at_start_.clear();
  for (uint32_t i = 0; i < work.plan.npeers; ++i) {
    const PeerUse& use = work.plan.peers[i];
    for (uint32_t f = 0; f < kFifosPerPair; ++f) {
      const FifoState& state = rank_.fifos[work.channel][rank_.layout.fifo_index(work.channel, use.peer, kLane, f)];
      sent_at_start_.push_back(state.sent);
      if ((use.credit_at_start >> f & 1) == 0) continue;
      // pairs with the credit load in ref_available (sink) at the peer
      word(rank_.peers[use.peer].mailbox, rank_.layout.credit_offset(work.channel, rank_.rank, kLane, f))
          .store(state.received, std::memory_order_release);
    }
  }
}

void HostExecutor::finish_work(const Work& work) {
  for (uint32_t i = 0; i < work.plan.npeers; ++i) {
    const PeerUse& use = work.plan.peers[i];
    if (!use.implied_ack) continue;
    for (uint32_t f = 0; f < kFifosPerPair; ++f) {
      rank_.fifos[work.channel][rank_.layout.fifo_index(work.channel, use.peer, kLane, f)].acked =
          sent_at_start_[i * kFifosPerPair + f];
    }
  }
  if (work.flip && work.output != nullptr) *static_cast<std::byte*>(work.output) ^= std::byte{1};
}

bool HostExecutor::advance() {
  if (done()) return false;
  bool moved = false;
  bool finished = true;
  for (uint32_t s = 0; s < kMaxStreams; ++s) {
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
      moved |= advance_cursor(work, work.plan.streams[stream], cursor);
      if (cursor.step != steps_of(work.plan.streams[stream])) return moved;
    }
    cursor = Cursor{cursor.work + 1, false, 0, 0};
  }
  return moved;
}

// Runs steps until one cannot go on, or the stream is at its end (cursor.step == number of steps).
bool HostExecutor::advance_cursor(const Work& work, const StreamView& view, Cursor& cursor) {
  bool moved = false;
  const uint32_t body_end = view.prologue + view.body;
  while (cursor.step < steps_of(view)) {
    const Step& step = work.plan.steps[view.first + cursor.step];
    if (!can_run(work, step) || !begin_touching(work, step)) return moved;
    run_step(work, step, cursor.round);
    end_touching(work);
    moved = true;
    if (++cursor.step == body_end && view.body > 0 && ++cursor.round < work.chunking.rounds) {
      cursor.step = view.prologue;
    }
  }
  return moved;
}

bool HostExecutor::can_run(const Work& work, const Step& step) const {
  for (uint32_t k = 0; k < uint32_t{step.sources} + step.sinks; ++k) {
    const Ref& ref = work.plan.refs[step.first_ref + k];
    if ((ref.flags & kWait) != 0 && !ref_available(work, ref, k < step.sources)) return false;
  }
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
  if (!work.direct || (ref.place != Place::kPeerInput && ref.place != Place::kPeerOutput)) return false;
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
    if (word(rank_.peers[p].mailbox, rank_.layout.touching).load(std::memory_order_seq_cst) != 0) return false;
  }
  return true;
}

bool HostExecutor::ref_available(const Work& work, const Ref& ref, bool source) const {
  const MailboxLayout& layout = rank_.layout;
  if (ref.place == Place::kDone) {
    // pairs with signal_ref(kDone) at the peer
    return word(rank_.mailbox, layout.done_offset(ref.peer, kLane)).load(std::memory_order_acquire) >= rank_.uses;
  }
  if (ref.place == Place::kPeerInput || ref.place == Place::kPeerOutput) {
    const uint64_t offset = layout.ready_offset(ref.peer, kLane, source ? 0 : 1);
    // pairs with signal_ref(kReady) at the peer
    const ReadyWord ready{word(rank_.mailbox, offset).load(std::memory_order_acquire),
                          word(rank_.mailbox, offset + 8).load(std::memory_order_acquire)};
    if (!ready_matches(ready, rank_.uses)) return false;
    if (ready_kind(ready) == ReadyKind::kAddress) return true;
  }
  const FifoState& state = fifo(work, ref);
  if (source) {
    // pairs with the tail store in signal_ref (sink) at the peer
    return word(rank_.mailbox, layout.tail_offset(work.channel, ref.peer, kLane, ref.fifo))
               .load(std::memory_order_acquire) > state.received;
  }
  const uint32_t depth = layout.channels[work.channel].depth;
  if (state.sent - state.acked < depth) return true;
  // pairs with the credit stores in start_work and signal_ref (source) at the peer
  const uint64_t credit = word(rank_.mailbox, layout.credit_offset(work.channel, ref.peer, kLane, ref.fifo))
                              .load(std::memory_order_acquire);
  return state.sent - credit < depth;
}

void HostExecutor::run_step(const Work& work, const Step& step, uint32_t round) {
  const Ref* refs = work.plan.refs + step.first_ref;
  const Piece piece = piece_of(work.chunking, step.block, kLane, round);
  Movement movement{static_cast<DataType>(work.type), static_cast<ReduceOp>(work.reduce), work.avg_ranks,
                    (step.flags & kFinal) != 0, piece.count, {}, {}, {}};
  for (uint32_t k = 0; k < uint32_t{step.sources} + step.sinks; ++k) {
    if (!is_data(refs[k].place)) continue;
    std::byte* place = locate(work, step, refs[k], round, k < step.sources);
    if (k < step.sources) movement.add_source(place, (refs[k].flags & kRaw) != 0);
    else movement.add_sink(place);
  }
  if (movement.sources.size() > 0 && piece.count > 0) move(movement);
  for (uint32_t k = 0; k < uint32_t{step.sources} + step.sinks; ++k) signal_ref(work, refs[k], k < step.sources);
}

// After the data of a step has moved: publish messages, return credits, raise flags, count.
void HostExecutor::signal_ref(const Work& work, const Ref& ref, bool source) {
  if (is_own(ref.place)) return;
  const MailboxLayout& layout = rank_.layout;
  std::byte* peer = rank_.peers[ref.peer].mailbox;
  const bool signals = (ref.flags & kSignal) != 0;
  if (ref.place == Place::kDone) {
    // pairs with ref_available(kDone) at the peer
    if (signals) word(peer, layout.done_offset(rank_.rank, kLane)).store(rank_.uses, std::memory_order_release);
    return;
  }
  if (ref.place == Place::kReady) {
    if (!signals) return;
    const bool input = ref.fifo == 0;
    const bool staged = (work.staged & (input ? 1 : 2)) != 0;
    const void* buffer = input ? work.input : work.output;
    const ReadyWord ready = make_ready(rank_.uses, staged ? ReadyKind::kStaged : ReadyKind::kAddress,
                                       reinterpret_cast<uint64_t>(buffer));
    const uint64_t offset = layout.ready_offset(rank_.rank, kLane, ref.fifo);
    // pairs with ref_available(kPeerInput, kPeerOutput) at the peer
    word(peer, offset).store(ready.half0, std::memory_order_release);
    word(peer, offset + 8).store(ready.half1, std::memory_order_release);
    return;
  }
  if (reached_directly(ref)) return;
  FifoState& state = fifo(work, ref);
  if (!source) {
    ++state.sent;
    // pairs with the tail load in ref_available (source) at the peer
    if (signals) {
      word(peer, layout.tail_offset(work.channel, rank_.rank, kLane, ref.fifo))
          .store(state.sent, std::memory_order_release);
    }
    return;
  }
  ++state.received;
  const uint32_t depth = layout.channels[work.channel].depth;
  if (signals && credits_each_slot(use_of(work, ref.peer).receives[ref.fifo], work.chunking.rounds, depth)) {
    // pairs with the credit load in ref_available (sink) at the peer
    word(peer, layout.credit_offset(work.channel, rank_.rank, kLane, ref.fifo))
        .store(state.received, std::memory_order_release);
  }
}

std::byte* HostExecutor::locate(const Work& work, const Step& step, const Ref& ref, uint32_t round, bool source) const {
  const Piece piece = piece_of(work.chunking, step.block, kLane, round);
  const uint64_t in = input_offset(work.chunking, step.block, piece) * element_bytes(work);
  const uint64_t out = output_offset(work.chunking, step.block, piece) * element_bytes(work);
  if (ref.place == Place::kInput) return static_cast<std::byte*>(const_cast<void*>(work.input)) + in;
  if (ref.place == Place::kOutput) return static_cast<std::byte*>(work.output) + out;
  const MailboxLayout& layout = rank_.layout;
  if (reached_directly(ref)) {
    const uint64_t offset = layout.ready_offset(ref.peer, kLane, source ? 0 : 1);
    const ReadyWord ready{word(rank_.mailbox, offset).load(std::memory_order_relaxed),
                          word(rank_.mailbox, offset + 8).load(std::memory_order_relaxed)};
    return reinterpret_cast<std::byte*>(ready_address(ready)) + (source ? in : out);
  }
  const FifoState& state = fifo(work, ref);
  if (source) return rank_.mailbox + layout.slot_offset(work.channel, ref.peer, kLane, ref.fifo, state.received);
  return rank_.peers[ref.peer].mailbox + layout.slot_offset(work.channel, rank_.rank, kLane, ref.fifo, state.sent);
}

// Only after ref_available: the ready word of this use is here.
bool HostExecutor::reached_directly(const Ref& ref) const {
  if (ref.place != Place::kPeerInput && ref.place != Place::kPeerOutput) return false;
  const uint64_t offset = rank_.layout.ready_offset(ref.peer, kLane, ref.place == Place::kPeerInput ? 0 : 1);
  return ready_kind(ReadyWord{0, word(rank_.mailbox, offset + 8).load(std::memory_order_relaxed)}) ==
         ReadyKind::kAddress;
}

FifoState& HostExecutor::fifo(const Work& work, const Ref& ref) const {
  return rank_.fifos[work.channel][rank_.layout.fifo_index(work.channel, ref.peer, kLane, ref.fifo)];
}

std::atomic_ref<uint64_t> HostExecutor::word(std::byte* mailbox, uint64_t offset) const {
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(mailbox + offset));
}

const PeerUse& HostExecutor::use_of(const Work& work, uint32_t peer) const {
  uint32_t i = 0;
  while (work.plan.peers[i].peer != peer) ++i;
  return work.plan.peers[i];
}

std::vector<HostWait> HostExecutor::current_waits() const {
  std::vector<HostWait> waits;
  for (uint32_t s = 0; s < kMaxStreams && !done(); ++s) {
    const Cursor& cursor = cursors_[s];
    if (cursor.work >= segment_end_ || !runnable(works_[cursor.work], s)) continue;
    const Work& work = works_[cursor.work];
    const StreamView& view = work.plan.streams[s];
    if (cursor.step >= steps_of(view)) continue;
    const Step& step = work.plan.steps[view.first + cursor.step];
    for (uint32_t k = 0; k < uint32_t{step.sources} + step.sinks; ++k) {
      const Ref& ref = work.plan.refs[step.first_ref + k];
      const bool source = k < step.sources;
      const bool missing = (ref.flags & kWait) != 0 && !ref_available(work, ref, source);
      if (!missing && !ref_revoked(work, ref)) continue;
      waits.push_back({ref.peer, ref.place, !source, work.sequence, work.operation, cursor.step, cursor.round});
    }
  }
  return waits;
}

}  // namespace talaria
