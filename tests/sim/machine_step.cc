// One step as a sequence of actions: each wait; reading and reducing; each sink's store, then its signal; each source's
// release. These are the executor's rules that the host and device engines must follow (docs/memory_model.md).
#include <algorithm>
#include <cstring>

#include "sim/arith.h"
#include "sim/machine.h"

namespace talaria::sim {
namespace {

bool inbox_like(const Ref& ref, bool direct) {
  return ref.place == Place::kInbox ||
         ((ref.place == Place::kPeerInput || ref.place == Place::kPeerOutput) && !direct);
}
bool carries_data(const Ref& ref) { return ref.place != Place::kReady && ref.place != Place::kDone; }
bool legal(const Ref& ref, bool source) {
  switch (ref.place) {
    case Place::kPeerInput: return source;
    case Place::kPeerOutput:
    case Place::kReady: return !source;
    default: return true;
  }
}

// 4-byte halves of a packet message: whole packets, at least one.
uint64_t halves_for(uint64_t bytes) { return std::max<uint64_t>((bytes + 7) / 8, 1) * 2; }

constexpr uint32_t kMaxFragments = 3;

}  // namespace

const Step& Machine::step_of(const Stream& stream, uint32_t* round) const {
  const Plan& plan = plan_of(stream);
  const StreamView& view = plan.streams()[stream.index];
  const uint64_t body = uint64_t{view.body} * scenario_.ops[stream.op].chunking.rounds;
  uint64_t at = stream.position;
  *round = 0;
  if (at >= view.prologue + body) at -= body - view.body;
  else if (at >= view.prologue) {
    *round = static_cast<uint32_t>((at - view.prologue) / view.body);
    at = view.prologue + (at - view.prologue) % view.body;
  }
  return plan.steps()[view.first + at];
}

Piece Machine::piece_for(const Stream& stream, const Step& step) const {
  uint32_t round = 0;
  step_of(stream, &round);
  return piece_of(scenario_.ops[stream.op].chunking, step.block, stream.lane, round);
}

Fifo& Machine::fifo(uint32_t producer, uint32_t consumer, const Stream& stream, uint32_t which) {
  const Channel channel = scenario_.ops[stream.op].channel;
  const uint64_t n = scenario_.nranks;
  uint64_t key = (static_cast<uint64_t>(channel) * n + producer) * n + consumer;
  key = (key * scenario_.lanes + stream.lane) * kFifosPerPair + which;
  std::unique_ptr<Fifo>& found = fifos_[key];
  if (!found) found = std::make_unique<Fifo>(scenario_.depth, scenario_.slot_bytes, is_packet(channel));
  return *found;
}

ReadyWord& Machine::ready(uint32_t from, uint32_t to, uint32_t lane, bool output) {
  return ready_[((from * scenario_.nranks + to) * scenario_.lanes + lane) * 2 + (output ? 1 : 0)];
}
Word& Machine::done(uint32_t from, uint32_t to, uint32_t lane) {
  return done_[(from * scenario_.nranks + to) * scenario_.lanes + lane];
}

VectorClock Machine::published_clock(Stream& stream) {
  VectorClock published = stream.clock;
  stream.clock.tick(stream.thread);
  return published;
}

void Machine::issue_word(Stream& stream, Word& word, uint64_t value, uint32_t rank, bool release) {
  lane_of(stream).stores.issue(
      Store{stream.thread, release, &word, rank, [&word, value, clock = published_clock(stream)] {
              word.value = value;
              word.clock.join(clock);
            }});
}

void Machine::check(const std::optional<Verdict>& verdict, const Stream& stream, const char* what) {
  if (verdict) fault(*verdict, &stream, what);
}

Progress Machine::advance(Stream& stream) {
  uint32_t round = 0;
  const Step& step = step_of(stream, &round);
  const Ref* refs = plan_of(stream).refs().data() + step.first_ref;
  const uint32_t nrefs = uint32_t{step.sources} + step.sinks;
  uint32_t stage = stream.stage++;
  if (stage == 0) stream.direct.assign(nrefs, false);
  if (stage < nrefs) {
    const Progress progress = wait(stream, refs[stage], stage, stage < step.sources);
    if (progress == Progress::kBlocked) {
      --stream.stage;
      stream.waits_for = refs[stage].peer;
    }
    return progress;
  }
  stage -= nrefs;
  if (stage == 0) {
    compute(stream, step);
    return Progress::kMoved;
  }
  stage -= 1;
  if (stage < 2u * step.sinks) {
    const uint32_t k = step.sources + stage / 2;
    if (stage % 2 == 0) write(stream, step, refs[k], stream.direct[k]);
    else publish(stream, refs[k], stream.direct[k]);
    return Progress::kMoved;
  }
  stage -= 2u * step.sinks;
  if (stage < step.sources) {
    release(stream, refs[stage], stream.direct[stage]);
    return Progress::kMoved;
  }
  ++stream.position;
  stream.stage = 0;
  return Progress::kMoved;
}

bool Machine::wait_ready(Stream& stream, const Ref& ref, bool output) {
  const ReadyWord& word = ready(ref.peer, stream.rank, stream.lane, output);
  const uint64_t tag = lane_of(stream).uses % kTagModulus;
  if (word.tag[0] != tag) return false;
  if (word.tag[1] != tag && !scenario_.sabotage.tear_ready) return false;
  if (!output && scenario_.ops[stream.op].reduce == ReduceOp::kPreMulSum) {
    if (word.scalar_tag[0] != tag) return false;
    if (word.scalar_tag[1] != tag && !scenario_.sabotage.tear_ready) return false;
  }
  stream.clock.join(word.clock);
  return true;
}

Progress Machine::wait_message(Stream& stream, const Ref& ref) {
  if ((ref.flags & kWait) == 0) return Progress::kMoved;
  Fifo& from = fifo(ref.peer, stream.rank, stream, ref.fifo);
  if (!from.packet) {
    if (from.tail.value <= from.received) return Progress::kBlocked;
    stream.clock.join(from.tail.clock);
    return Progress::kMoved;
  }
  uint32_t round = 0;
  const Step& step = step_of(stream, &round);
  const uint64_t bytes = piece_for(stream, step).count * bytes_of(scenario_.ops[stream.op].type);
  Slot& slot = from.slot(from.received);
  const uint32_t tag = packet_tag(from.received, kTagModulus);
  for (uint64_t h = 0; h < std::min<uint64_t>(halves_for(bytes), slot.halves.size()); ++h) {
    if (slot.halves[h].tag != tag) return Progress::kBlocked;
  }
  stream.clock.join(slot.clock);
  return Progress::kMoved;
}

Progress Machine::wait_credit(Stream& stream, const Ref& ref) {
  if ((ref.flags & kWait) == 0) return Progress::kMoved;
  Fifo& to = fifo(stream.rank, ref.peer, stream, ref.fifo);
  if (to.sent - to.acked < scenario_.depth) return Progress::kMoved;  // the credit need not even be looked at
  if (to.sent - to.credit.value >= scenario_.depth) return Progress::kBlocked;
  stream.clock.join(to.credit.clock);
  return Progress::kMoved;
}

Progress Machine::wait(Stream& stream, const Ref& ref, uint32_t k, bool source) {
  if (!legal(ref, source)) check(Verdict::kOutOfBounds, stream, "a place that cannot be used so");
  if (ref.place == Place::kInput || ref.place == Place::kOutput) return Progress::kMoved;
  if (ref.peer >= scenario_.nranks || ref.peer == stream.rank || ref.fifo >= kFifosPerPair) {
    check(Verdict::kOutOfBounds, stream, "no such peer or FIFO");
  }
  if (fault_) return Progress::kMoved;
  if (ref.place == Place::kDone || ref.place == Place::kReady) {
    if (!source || (ref.flags & kWait) == 0) return Progress::kMoved;
    const Word& word = done(ref.peer, stream.rank, stream.lane);
    if (word.value < lane_of(stream).uses) return Progress::kBlocked;
    stream.clock.join(word.clock);
    return Progress::kMoved;
  }
  if (ref.place == Place::kPeerInput || ref.place == Place::kPeerOutput) {
    const bool output = ref.place == Place::kPeerOutput;
    if ((ref.flags & kWait) != 0 && !wait_ready(stream, ref, output)) return Progress::kBlocked;
    stream.direct[k] = ready(ref.peer, stream.rank, stream.lane, output).direct;
    if (stream.direct[k]) return Progress::kMoved;
  }
  return source ? wait_message(stream, ref) : wait_credit(stream, ref);
}

void Machine::read_slot(Stream& stream, const Ref& ref, uint64_t bytes, std::vector<std::byte>& out) {
  Fifo& from = fifo(ref.peer, stream.rank, stream, ref.fifo);
  Slot& slot = from.slot(from.received);
  if (bytes > scenario_.slot_bytes) return check(Verdict::kOutOfBounds, stream, "message larger than a slot");
  if (slot.message != from.received + 1 || slot.pending != 0) {
    return check(Verdict::kRace, stream, "reads a message that has not arrived");
  }
  if (!stream.clock.covers(slot.producer, slot.written)) {
    return check(Verdict::kRace, stream, "reads a message without having waited for it");
  }
  slot.consumer = stream.thread;
  slot.read = stream.clock.now(stream.thread);
  out.resize(bytes);
  if (!from.packet) {
    std::copy_n(slot.bytes.begin(), bytes, out.begin());
    return;
  }
  for (uint64_t h = 0; h < halves_for(bytes); ++h) {
    if (slot.halves[h].message != from.received + 1) {
      return check(Verdict::kRace, stream, "takes an old packet for a new one");
    }
    if (h * 4 < bytes) std::memcpy(&out[h * 4], &slot.halves[h].data, std::min<uint64_t>(4, bytes - h * 4));
  }
}

// PreMulSum multiplies what comes from a send buffer, by its owner's scalar: my own, or what the peer told with its
// ready word.
uint64_t Machine::scalar_of(const Stream& stream, const Ref& ref) {
  if (ref.place == Place::kInput) return scenario_.ops[stream.op].scalars[stream.rank];
  const ReadyWord& word = ready(ref.peer, stream.rank, stream.lane, false);
  return word.scalar[0] | uint64_t{word.scalar[1]} << 32;
}

// Reads every source and reduces them into stream.value.
void Machine::compute(Stream& stream, const Step& step) {
  const Op& op = scenario_.ops[stream.op];
  const Plan& plan = plan_of(stream);
  if (step.block >= plan.blocks()) return check(Verdict::kOutOfBounds, stream, "no such block");
  const Piece piece = piece_for(stream, step);
  const uint64_t size = bytes_of(op.type), bytes = piece.count * size;
  std::vector<std::vector<std::byte>> values;
  std::vector<Operand> operands;
  std::vector<uint64_t> scalars(step.sources);
  for (uint32_t k = 0; k < step.sources; ++k) {
    const Ref& ref = plan.refs()[step.first_ref + k];
    if (!carries_data(ref)) continue;
    std::vector<std::byte>& value = values.emplace_back(bytes);
    if (inbox_like(ref, stream.direct[k])) {
      read_slot(stream, ref, bytes, value);
    } else {
      const uint32_t owner = ref.place == Place::kPeerInput ? ref.peer : stream.rank;
      if (!op.plans[owner]) return check(Verdict::kOutOfBounds, stream, "no such buffer");
      Arena& from = arena(stream.op, owner);
      const bool output = ref.place == Place::kOutput;
      const ByteRange buffer = output ? from.output() : from.input();
      const uint32_t block = block_of(step, stream.rank, owner != stream.rank);
      const uint64_t offset = output ? output_offset(op.chunking, block, piece)
                                     : input_offset(op.chunking, block, piece);
      // An empty piece touches nothing, wherever it would lie.
      const uint64_t begin = piece.count == 0 ? buffer.begin : buffer.begin + offset * size;
      check(from.access({begin, begin + bytes}, buffer, false, {stream.thread, stream.clock}), stream,
            "reads a buffer");
      if (!fault_) std::copy(from.at(begin), from.at(begin + bytes), value.begin());
    }
    if (fault_) return;
    operands.push_back({nullptr, (ref.flags & kRaw) != 0});
    const bool sent_from = ref.place == Place::kInput || (ref.place == Place::kPeerInput && stream.direct[k]);
    if (!sent_from || op.reduce != ReduceOp::kPreMulSum) continue;
    scalars[k] = scalar_of(stream, ref);
    operands.back().scalar = reinterpret_cast<const std::byte*>(&scalars[k]);
  }
  for (size_t k = 0; k < operands.size(); ++k) operands[k].data = values[k].data();
  if (operands.size() > 1 && op.reduce == ReduceOp::kNone) {
    return check(Verdict::kOutOfBounds, stream, "several sources, no reduction");
  }
  stream.value.assign(operands.empty() ? 0 : bytes, std::byte{0});
  const Reduction reduction{op.type, op.reduce, scenario_.nranks};
  if (!operands.empty()) {
    reduce_piece(reduction, operands, (step.flags & kFinal) != 0, piece.count, stream.value.data());
  }
}

// A copy from the own input to the own output of a call in place, which moves nothing.
bool Machine::copies_onto_itself(const Stream& stream, const Step& step) {
  const Op& op = scenario_.ops[stream.op];
  if (step.sources != 1 || plan_of(stream).refs()[step.first_ref].place != Place::kInput) return false;
  const Piece piece = piece_for(stream, step);
  Arena& own = arena(stream.op, stream.rank);
  return op.reduce == ReduceOp::kNone &&
         own.input().begin + input_offset(op.chunking, step.block, piece) * bytes_of(op.type) ==
             own.output().begin + output_offset(op.chunking, step.block, piece) * bytes_of(op.type);
}

void Machine::write(Stream& stream, const Step& step, const Ref& ref, bool direct) {
  if (!carries_data(ref)) return;
  if (inbox_like(ref, direct)) return write_slot(stream, ref);
  const Op& op = scenario_.ops[stream.op];
  const uint32_t owner = ref.place == Place::kPeerOutput ? ref.peer : stream.rank;
  if (!op.plans[owner] || ref.place == Place::kInput) return check(Verdict::kOutOfBounds, stream, "no such buffer");
  if (owner == stream.rank && copies_onto_itself(stream, step)) return;
  Arena& to = arena(stream.op, owner);
  const Piece piece = piece_for(stream, step);
  const uint32_t block = block_of(step, stream.rank, owner != stream.rank);
  const uint64_t offset = output_offset(op.chunking, block, piece) * bytes_of(op.type);
  const uint64_t begin = piece.count == 0 ? to.output().begin : to.output().begin + offset;
  const ByteRange range{begin, begin + stream.value.size()};
  check(to.access(range, to.output(), true, {stream.thread, stream.clock}), stream, "writes a buffer");
  if (fault_) return;
  if (owner == stream.rank) std::copy(stream.value.begin(), stream.value.end(), to.at(begin));
  else write_direct(stream, ref, range);
}

void Machine::write_direct(Stream& stream, const Ref& ref, const ByteRange& range) {
  Arena& to = arena(stream.op, ref.peer);
  for (const ByteRange& part : split_at_random(range.end - range.begin, 1, kMaxFragments, random_)) {
    const ByteRange target{range.begin + part.begin, range.begin + part.end};
    to.store_pending(target);
    const auto first = stream.value.begin() + static_cast<ptrdiff_t>(part.begin);
    std::vector<std::byte> data(first, first + static_cast<ptrdiff_t>(part.end - part.begin));
    lane_of(stream).stores.issue(Store{stream.thread, false, nullptr, ref.peer, [&to, target, data = std::move(data)] {
                                         to.store_arrived(target, data.data());
                                       }});
  }
}

void Machine::write_slot(Stream& stream, const Ref& ref) {
  Fifo& to = fifo(stream.rank, ref.peer, stream, ref.fifo);
  Slot& slot = to.slot(to.sent);
  const uint64_t bytes = stream.value.size();
  if (bytes > scenario_.slot_bytes) return check(Verdict::kOutOfBounds, stream, "message larger than a slot");
  const bool free = to.received >= slot.message && slot.pending == 0 && stream.clock.covers(slot.consumer, slot.read) &&
                    stream.clock.covers(slot.producer, slot.written);
  if (!free) return check(Verdict::kSlotOverwritten, stream, "stores into a slot that may still be read");
  if (to.packet && (ref.flags & kSignal) == 0) return;  // without its flag a packet is nothing
  slot.message = to.sent + 1;
  slot.producer = stream.thread;
  slot.written = stream.clock.now(stream.thread);
  slot.clock = published_clock(stream);
  const uint32_t tag = packet_tag(to.sent, kTagModulus);
  const uint64_t length = to.packet ? halves_for(bytes) : bytes;
  for (const ByteRange& part : split_at_random(length, 1, to.packet ? 4 : kMaxFragments, random_)) {
    ++slot.pending;
    Store store{stream.thread, false, nullptr, ref.peer, {}};
    if (to.packet) {
      std::vector<std::byte> data((part.end - part.begin) * 4);
      if (part.begin * 4 < bytes) {
        std::copy_n(stream.value.begin() + static_cast<ptrdiff_t>(part.begin * 4),
                    std::min<uint64_t>(data.size(), bytes - part.begin * 4), data.begin());
      }
      store.arrive = [&slot, part, tag, message = to.sent + 1, data = std::move(data)] {
        for (uint64_t h = part.begin; h < part.end; ++h) {
          std::memcpy(&slot.halves[h].data, &data[(h - part.begin) * 4], 4);
          slot.halves[h].tag = tag;
          slot.halves[h].message = message;
        }
        --slot.pending;
      };
    } else {
      const auto first = stream.value.begin() + static_cast<ptrdiff_t>(part.begin);
      std::vector<std::byte> data(first, first + static_cast<ptrdiff_t>(part.end - part.begin));
      store.arrive = [&slot, part, data = std::move(data)] {
        std::copy(data.begin(), data.end(), slot.bytes.begin() + static_cast<ptrdiff_t>(part.begin));
        --slot.pending;
      };
    }
    lane_of(stream).stores.issue(std::move(store));
  }
}

void Machine::tell_scalar(Stream& stream, const Ref& ref, ReadyWord& word) {
  const uint64_t tag = lane_of(stream).uses % kTagModulus;
  const uint64_t scalar = scenario_.ops[stream.op].scalars[stream.rank];
  for (int half = 0; half < 2; ++half) {
    const uint32_t bits = static_cast<uint32_t>(scalar >> 32 * half);
    lane_of(stream).stores.issue(
        Store{stream.thread, false, &word.scalar_tag[half], ref.peer, [&word, half, tag, bits] {
                word.scalar_tag[half] = tag;
                word.scalar[half] = bits;
              }});
  }
}

void Machine::publish(Stream& stream, const Ref& ref, bool direct) {
  const bool signal = (ref.flags & kSignal) != 0, strong = ref.reserved != kWeakSignal;
  if (ref.place == Place::kDone) {
    if (signal) issue_word(stream, done(stream.rank, ref.peer, stream.lane), lane_of(stream).uses, ref.peer, strong);
    return;
  }
  if (ref.place == Place::kReady) {
    if (!signal) return;
    const bool output = ref.fifo == 1;
    ReadyWord& word = ready(stream.rank, ref.peer, stream.lane, output);
    const uint64_t tag = lane_of(stream).uses % kTagModulus;
    const bool in_place = is_direct(stream.op, stream.rank, stream.lane, output);
    const VectorClock clock = published_clock(stream);
    for (int half = 0; half < 2; ++half) {
      lane_of(stream).stores.issue(
          Store{stream.thread, false, &word.tag[half], ref.peer, [&word, half, tag, in_place, clock] {
                  word.tag[half] = tag;
                  if (half == 1) word.direct = in_place;
                  word.clock.join(clock);
                }});
    }
    if (!output && scenario_.ops[stream.op].reduce == ReduceOp::kPreMulSum) tell_scalar(stream, ref, word);
    return;
  }
  if (!inbox_like(ref, direct)) return;
  Fifo& to = fifo(stream.rank, ref.peer, stream, ref.fifo);
  if (signal && !to.packet) issue_word(stream, to.tail, to.sent + 1, ref.peer, strong);
  ++to.sent;
}

void Machine::release(Stream& stream, const Ref& ref, bool direct) {
  if (!inbox_like(ref, direct)) return;
  Fifo& from = fifo(ref.peer, stream.rank, stream, ref.fifo);
  if (from.packet && !scenario_.sabotage.keep_old_tags &&
      packet_zeroes_slot(from.received, scenario_.depth, kTagModulus)) {
    Slot& slot = from.slot(from.received);
    std::fill(slot.halves.begin(), slot.halves.end(), PacketHalf{});
  }
  ++from.received;
  if ((ref.flags & kSignal) == 0 || scenario_.sabotage.ignore_credit_rule) return;
  for (const PeerUse& use : plan_of(stream).peers()) {
    if (use.peer != ref.peer) continue;
    if (!credits_each_slot(use.receives[ref.fifo], scenario_.ops[stream.op].chunking.rounds, scenario_.depth)) return;
    issue_word(stream, from.credit, from.received, ref.peer, false);
  }
}

}  // namespace talaria::sim
