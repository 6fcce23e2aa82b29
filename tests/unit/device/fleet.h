// Fleet: ranks whose kernels run on emulated blocks: mailboxes, counters and communicators as the device engine lays
// them out, plans from the catalog.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/device/batch.h"
#include "schedule/algorithm.h"

namespace talaria {

using Bytes = std::vector<std::byte>;

struct FleetShape {
  uint32_t nranks;
  uint32_t lanes = 2;
  uint32_t depth = 4;
  uint32_t slot_bytes = 256;
};

// Elements of a rank's send and receive buffer; of rooted operations those of the root.
size_t input_elements(const Collective& collective, uint32_t nranks);
size_t output_elements(const Collective& collective, uint32_t nranks);

// One call on all ranks. offsets shift the user buffers in bytes, to misalign them.
struct FleetCall {
  std::string algorithm;
  Collective collective;
  Channel channel;
  bool in_place = false;
  uint32_t shift = 0;
  bool flip = false;
  Form form = Form::kStaged;
  bool fused = false;  // fused paths are allowed
  std::vector<uint64_t> scalars = {};  // PreMulSum: each rank's, an element in the lowest bytes
};

class Fleet {
 public:
  explicit Fleet(const FleetShape& shape);

  // What rank r's kernel does with a batch: which kernel, that is.
  using Kernel = std::function<void(const Batch&)>;

  // Queues a call; inputs[r] is what rank r sends. Its results come from outputs(call) after run().
  size_t add(const FleetCall& call, const std::vector<Bytes>& inputs);
  // Queues a matching pair, a send of `from` and a receive of `to`, bytes of the given element type.
  size_t add_transfer(uint32_t from, uint32_t to, DataType type, const Bytes& data);
  // Launches each rank's works as one batch. False: not done within a minute, or a rank reported a fault.
  bool run(const Kernel& kernel, uint64_t seed, uint32_t threads_per_stream = 32);
  const std::vector<Bytes>& outputs(size_t call) const { return calls_[call]->outputs; }
  // Some byte around a user buffer was written.
  bool trespassed() const { return trespassed_; }

  // The rank's queued works are not launched.
  void withhold(uint32_t rank) { ranks_[rank]->works.clear(); }
  // The last run's blocks all ended by themselves.
  bool all_left() const { return all_left_; }
  void abort(uint32_t rank) { ranks_[rank]->abort_word = 1; }
  const FaultRecord& fault(uint32_t rank) const { return ranks_[rank]->fault; }
  // Makes all counters of a channel what they would be after `messages` messages each way, all acknowledged.
  void age(Channel channel, uint64_t messages);
  // Every packet slot holds junk that carries the tag its first message after a wrap-around will have.
  void plant_stale_packets();

 private:
  struct Rank {
    Bytes mailbox;
    std::vector<FifoState> fifos[kMailboxChannels];
    std::vector<std::byte*> peers;
    DeviceComm comm{};
    uint32_t abort_word = 0;
    FaultRecord fault{};
    std::vector<Work> works;
    std::vector<std::unique_ptr<Plan>> plans;
  };
  struct Call {
    std::vector<Bytes> inputs, outputs;  // with margins before run() ends, bare after
    std::vector<size_t> input_bytes, output_bytes;
    uint32_t shift = 0;
    bool in_place = false;
    bool done = false;
  };

  void bind(Call& call, const FleetCall& what, uint32_t rank, const Shape& shape, const Collective& collective);
  void finish(Call& call);

  FleetShape shape_;
  MailboxLayout layout_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<std::unique_ptr<Call>> calls_;
  bool trespassed_ = false;
  bool all_left_ = false;
};

}  // namespace talaria
