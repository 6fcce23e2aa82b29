// Cases: builds scenarios from calls, with random data, expected results, and random grouping into launches.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/memory.h"
#include "sim/scenario.h"

namespace talaria::sim {

// One collective call on all ranks.
struct Call {
  const Algorithm* algorithm;
  Collective collective;
  Form form = Form::kStaged;
  Channel channel = Channel::kCollectiveBulk;
  uint32_t lanes = 1;
  uint64_t in_place = 0;  // bit r: rank r calls in place, where the operation can be
};

struct Transfer {
  uint32_t source, destination;
  uint64_t count;
  DataType type = DataType::kInt32;
};

struct Room {
  uint32_t nranks;
  uint32_t lanes;
  uint32_t depth;
  uint64_t slot_bytes;
};

// Plans of all ranks for one call; kept for the life of the process, since tests ask for the same ones again and again.
const std::vector<std::shared_ptr<const Plan>>& plans_for(const Call& call, uint32_t nranks);

// Like chunking_for, but cuts small data into many pieces over exactly `lanes` lanes.
Chunking small_chunking(const Collective& collective, const Room& room, uint32_t blocks, uint32_t lanes);

// `count` elements: all bit patterns for integers; numbers whose sums round for floating types; with `signed_zeros`
// mostly zeros of both signs, for extremes whose order shows.
Bytes random_data(DataType type, uint64_t count, bool signed_zeros, Random& random);

class ScenarioBuilder {
 public:
  ScenarioBuilder(const Room& room, Random& random);
  // Returns the index of the operation.
  uint32_t add(const Call& call);
  // One group of sends and receives; transfers between one pair match in order.
  void add_group(std::vector<Transfer> transfers);
  Scenario& scenario() { return scenario_; }
  // Groups the collectives into launches, differently on every rank.
  Scenario finish();

 private:
  uint32_t add_transfer(const Transfer& transfer);

  struct Episode {
    bool collective;
    std::vector<uint32_t> ops;
  };
  Room room_;
  Random& random_;
  Scenario scenario_;
  std::vector<Episode> episodes_;
};

// Any reduction where the operation reduces, else none.
ReduceOp random_reduction(Operation operation, Random& random);

// A scalar for each rank if `reduce` is PreMulSum, else none.
std::vector<uint64_t> random_scalars(ReduceOp reduce, DataType type, uint32_t nranks, Random& random);

// A random call that `room` can carry out.
Call random_call(const Room& room, Random& random);
std::vector<Transfer> random_transfers(const Room& room, Random& random);

std::string describe(const Call& call);

}  // namespace talaria::sim
