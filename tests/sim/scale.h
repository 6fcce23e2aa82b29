// Scale mode: thousands of ranks in one event loop, with real data and an α–β clock, without a memory model.
//
// Every stream runs until a wait stops it; what it waits for wakes it. Streams and FIFOs form a Kahn network, so
// results and times do not depend on the order of events.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/scenario.h"

namespace talaria::sim {

struct ScaleCase {
  Collective collective{};
  uint32_t nranks = 1;
  uint32_t depth = 4;
  Chunking chunking{};
  std::vector<std::shared_ptr<const Plan>> plans;  // per rank
  const std::vector<Bytes>* inputs = nullptr;      // per rank
  std::vector<uint64_t> scalars;                   // per rank, of PreMulSum: an element in the lowest bytes
  std::vector<bool> direct;   // per rank: its buffers are touched in place (plans of the direct form); empty: none are
  double alpha_usec = 1.0;            // from a store to its arrival
  double beta_usec_per_byte = 1e-5;   // for its sender
};

struct ScaleReport {
  Verdict verdict = Verdict::kOk;  // kOk, kDeadlock, kLeftOver or kOutOfBounds
  std::string text;
  std::vector<Bytes> outputs;
  double usec = 0;  // when the last rank is done
  uint64_t steps = 0;
};

ScaleReport run_scaled(const ScaleCase& scale);

}  // namespace talaria::sim
