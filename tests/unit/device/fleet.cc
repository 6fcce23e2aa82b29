#include "fleet.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "emulated/cuda.h"
#include "engine/device/fused/fused_path.h"

namespace talaria {
namespace {

constexpr size_t kMargin = 64;
constexpr std::byte kGuard{0xa5}, kPoison{0x5a};

// The send buffer holds a block for every rank, of which in-place results take one.
bool splits_input(Operation operation) {
  return operation == Operation::kReduceScatter || operation == Operation::kScatter;
}
// The receive buffer holds a block of every rank.
bool joins_inputs(Operation operation) {
  return operation == Operation::kAllGather || operation == Operation::kGather;
}

Bytes with_margins(const Bytes& data, size_t bytes, uint32_t shift) {
  Bytes buffer(kMargin + shift + bytes + kMargin, kGuard);
  std::fill_n(buffer.begin() + static_cast<ptrdiff_t>(kMargin + shift), bytes, kPoison);
  std::copy(data.begin(), data.end(), buffer.begin() + static_cast<ptrdiff_t>(kMargin + shift));
  return buffer;
}

}  // namespace

size_t input_elements(const Collective& collective, uint32_t nranks) {
  const bool all = splits_input(collective.operation) || collective.operation == Operation::kAlltoAll;
  return collective.count * (all ? nranks : 1);
}
size_t output_elements(const Collective& collective, uint32_t nranks) {
  const bool all = joins_inputs(collective.operation) || collective.operation == Operation::kAlltoAll;
  return collective.count * (all ? nranks : 1);
}

Fleet::Fleet(const FleetShape& shape) : shape_(shape) {
  const ChannelSize size{shape.lanes, shape.depth, shape.slot_bytes};
  layout_ = make_mailbox_layout(shape.nranks, {size, size, size});
  for (uint32_t r = 0; r < shape.nranks; ++r) {
    auto rank = std::make_unique<Rank>();
    rank->mailbox.resize(layout_.bytes + 128);
    rank->comm.rank = r;
    rank->comm.nranks = shape.nranks;
    rank->comm.layout = layout_;
    for (uint32_t c = 0; c < kMailboxChannels; ++c) {
      rank->fifos[c].resize(layout_.fifo_index(c, shape.nranks, 0, 0));
      rank->comm.fifos[c] = rank->fifos[c].data();
    }
    rank->comm.abort_word = &rank->abort_word;
    rank->comm.fault = &rank->fault;
    ranks_.push_back(std::move(rank));
  }
  const auto base = [](Rank& rank) {
    void* address = rank.mailbox.data();
    size_t room = rank.mailbox.size();
    return static_cast<std::byte*>(std::align(128, rank.mailbox.size() - 128, address, room));
  };
  for (auto& rank : ranks_) {
    for (auto& peer : ranks_) rank->peers.push_back(base(*peer));
    rank->comm.peers = rank->peers.data();
    rank->comm.mailbox = base(*rank);
  }
}

void Fleet::bind(Call& call, const FleetCall& what, uint32_t rank, const Shape& shape, const Collective& collective) {
  const Algorithm* algorithm = find_algorithm(what.algorithm.c_str());
  auto plan = std::make_unique<Plan>(algorithm->build(shape));
  if (!plan->seal().ok()) std::abort();
  Work work{};
  work.plan = plan->view();
  work.chunking = chunking_for(collective, shape_.nranks, plan->blocks(), shape_.lanes, shape_.slot_bytes);
  work.type = static_cast<uint8_t>(collective.type);
  work.reduce = static_cast<uint8_t>(reduces(collective.operation) ? collective.reduce : ReduceOp::kNone);
  work.channel = static_cast<uint8_t>(what.channel);
  work.join = !is_point_to_point(collective.operation);
  work.avg_ranks = shape_.nranks;
  work.flip = what.flip;
  if (!what.scalars.empty()) work.scalar = what.scalars[rank];
  if (!call.inputs[rank].empty()) work.input = call.inputs[rank].data() + kMargin + call.shift;
  if (!call.outputs[rank].empty()) work.output = call.outputs[rank].data() + kMargin + call.shift;
  const uint64_t own_block = rank * collective.count * bytes_of(collective.type);
  if (call.in_place) {
    // As NCCL defines it: (reduce-)scatter writes its own block, (all-)gather reads its own block.
    if (splits_input(collective.operation)) {
      work.output = static_cast<std::byte*>(const_cast<void*>(work.input)) + own_block;
    } else if (joins_inputs(collective.operation)) {
      work.input = static_cast<std::byte*>(work.output) + own_block;
    } else {
      work.input = work.output;
    }
  }
  if (what.fused) work.fused = static_cast<uint8_t>(fused_path_of(work));
  ranks_[rank]->works.push_back(work);
  ranks_[rank]->plans.push_back(std::move(plan));
}

size_t Fleet::add(const FleetCall& what, const std::vector<Bytes>& inputs) {
  auto call = std::make_unique<Call>();
  const Collective& collective = what.collective;
  const size_t element = bytes_of(collective.type);
  call->shift = what.shift;
  call->in_place = what.in_place;
  for (uint32_t r = 0; r < shape_.nranks; ++r) {
    const size_t in = input_elements(collective, shape_.nranks) * element;
    const size_t out = output_elements(collective, shape_.nranks) * element;
    Bytes preset;
    if (what.in_place && joins_inputs(collective.operation)) {
      preset.assign(out, kPoison);
      std::copy(inputs[r].begin(), inputs[r].end(), preset.begin() + static_cast<ptrdiff_t>(r * in));
    } else if (what.in_place && !splits_input(collective.operation)) {
      preset = inputs[r];
    }
    call->input_bytes.push_back(in);
    call->output_bytes.push_back(out);
    call->inputs.push_back(with_margins(inputs[r], in, what.shift));
    call->outputs.push_back(with_margins(preset, out, what.shift));
    const Shape shape{collective.operation, collective.root, r, shape_.nranks, what.form};
    bind(*call, what, r, shape, collective);
    if (what.in_place && splits_input(collective.operation)) call->outputs[r].clear();
  }
  calls_.push_back(std::move(call));
  return calls_.size() - 1;
}

size_t Fleet::add_transfer(uint32_t from, uint32_t to, DataType type, const Bytes& data) {
  auto call = std::make_unique<Call>();
  call->inputs.resize(shape_.nranks);
  call->outputs.resize(shape_.nranks);
  call->input_bytes.resize(shape_.nranks);
  call->output_bytes.resize(shape_.nranks);
  call->inputs[from] = with_margins(data, data.size(), 0);
  call->outputs[to] = with_margins({}, data.size(), 0);
  call->input_bytes[from] = call->output_bytes[to] = data.size();
  const FleetCall what{"pairwise", {}, Channel::kPointBulk};
  const uint64_t count = data.size() / bytes_of(type);
  for (const bool sends : {true, false}) {
    const uint32_t rank = sends ? from : to;
    const int32_t peer = static_cast<int32_t>(sends ? to : from);
    const Operation operation = sends ? Operation::kSend : Operation::kRecv;
    bind(*call, what, rank, Shape{operation, peer, rank, shape_.nranks, Form::kStaged},
         Collective{operation, type, ReduceOp::kNone, peer, count});
  }
  calls_.push_back(std::move(call));
  return calls_.size() - 1;
}

void Fleet::finish(Call& call) {
  const auto intact = [this](std::byte b) { trespassed_ |= b != kGuard; };
  const auto strip = [&](Bytes& buffer, size_t bytes) {
    if (buffer.empty()) return;
    const auto begin = buffer.begin() + static_cast<ptrdiff_t>(kMargin + call.shift);
    std::for_each(buffer.begin(), begin, intact);
    std::for_each(begin + static_cast<ptrdiff_t>(bytes), buffer.end(), intact);
    buffer = Bytes(begin, begin + static_cast<ptrdiff_t>(bytes));
  };
  for (uint32_t r = 0; r < shape_.nranks; ++r) {
    strip(call.inputs[r], call.input_bytes[r]);
    strip(call.outputs[r], call.output_bytes[r]);
    if (call.in_place && call.outputs[r].empty() && call.output_bytes[r] != 0) {
      const auto own = call.inputs[r].begin() + static_cast<ptrdiff_t>(r * call.output_bytes[r]);
      call.outputs[r] = Bytes(own, own + static_cast<ptrdiff_t>(call.output_bytes[r]));
    }
  }
  call.done = true;
}

bool Fleet::run(const Kernel& kernel, uint64_t seed, uint32_t threads_per_stream) {
  std::atomic<bool> stop = false;
  std::atomic<uint32_t> finished = 0, blocks = 0;
  std::vector<std::unique_ptr<Batch>> batches;
  std::vector<std::thread> threads;
  std::atomic<bool> complete = true;
  for (auto& rank : ranks_) {
    auto batch = std::make_unique<Batch>();
    *batch = Batch{};
    batch->entries = 1;
    batch->streams = 1;
    batch->spilled_works = rank->works.data();
    batch->entry[0] = BatchEntry{&rank->comm, 0, static_cast<uint32_t>(rank->works.size()), 0, 0};
    for (size_t w = 0; w < rank->works.size(); ++w) {
      const Work& work = rank->works[w];
      batch->streams = std::max(batch->streams, work.plan.nstreams);
      batch->entry[0].lanes = std::max(batch->entry[0].lanes, work.chunking.lanes);
      if (rank->works.size() <= kInlineWorks) batch->works[w] = work;
    }
    if (rank->works.size() <= kInlineWorks) batch->spilled_works = nullptr;
    for (uint32_t b = 0; b < batch->entry[0].lanes && !rank->works.empty(); ++b) {
      ++blocks;
      threads.emplace_back([&, b, launched = batch.get(), salt = rank->comm.rank] {
        const uint32_t width = launched->streams * threads_per_stream;
        const bool ok = emulated::run_block(b, width, seed + 97 * salt, stop, [&] { kernel(*launched); });
        if (!ok) complete = false;
        ++finished;
      });
    }
    batches.push_back(std::move(batch));
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (finished < blocks && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  all_left_ = complete;
  for (auto& rank : ranks_) {
    rank->works.clear();
    rank->plans.clear();
    if (rank->fault.valid != 0) complete = false;
  }
  for (auto& call : calls_) {
    if (!call->done) finish(*call);
  }
  return complete;
}

void Fleet::age(Channel channel, uint64_t messages) {
  const uint32_t c = static_cast<uint32_t>(channel);
  for (auto& rank : ranks_) {
    for (FifoState& state : rank->fifos[c]) state = FifoState{messages, messages, messages, messages};
    for (uint32_t peer = 0; peer < shape_.nranks; ++peer) {
      for (uint32_t lane = 0; lane < shape_.lanes; ++lane) {
        for (uint32_t fifo = 0; fifo < kFifosPerPair; ++fifo) {
          std::byte* mailbox = rank->comm.mailbox;
          std::memcpy(mailbox + layout_.tail_offset(c, peer, lane, fifo), &messages, sizeof messages);
          std::memcpy(mailbox + layout_.credit_offset(c, peer, lane, fifo), &messages, sizeof messages);
        }
      }
    }
  }
}

void Fleet::plant_stale_packets() {
  const ChannelLayout& channel = layout_.channels[0];
  for (auto& rank : ranks_) {
    for (uint64_t slot = 0; slot < layout_.fifo_index(0, shape_.nranks, 0, 0) * channel.depth; ++slot) {
      const uint64_t half = 0xdeadbeef | uint64_t{packet_tag(slot % channel.depth)} << 32;
      std::byte* begin = rank->comm.mailbox + channel.slots + slot * channel.slot_stride;
      for (uint32_t i = 0; i < 2 * channel.slot_bytes; i += 8) std::memcpy(begin + i, &half, 8);
    }
  }
}

}  // namespace talaria
