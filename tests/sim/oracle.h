// Oracle: the results an operation must have, by plain loops over ranks and elements. Knows no plan.
//
// Where the order of additions shows, it follows the order each algorithm documents: rank order, or around the ring
// or up a tree with a rounding at every hop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedule/collective.h"

namespace talaria::sim {

using Bytes = std::vector<std::byte>;

enum class AdditionOrder : uint8_t {
  kRanks,  // 0, 1, …, n-1, rounded once
  kRing,   // from rank to rank, rounded at each hop. All-reduce: block b starts at rank b; reduce-scatter: at rank b+1;
           // reduce: behind the root
  kTree,   // (left half), middle, (right half), rounded at each middle. All-reduce: block b's row starts at rank b;
           // reduce: the root is the middle of the row
};

struct OracleRules {
  AdditionOrder order = AdditionOrder::kRanks;
  uint64_t block_elements = 0;  // kRing and kTree, AllReduce: elements per block
  std::vector<uint64_t> scalars = {};  // PreMulSum: each rank's, an element in the lowest bytes
};

// The order that `algorithm` documents.
AdditionOrder addition_order(const char* algorithm);

// inputs[r] is rank r's send buffer (empty where the operation reads none). Returns every rank's receive buffer.
// Send and Recv are not collectives: their result is the sender's input.
std::vector<Bytes> expected_outputs(const Collective& collective, const std::vector<Bytes>& inputs,
                                    const OracleRules& rules);

}  // namespace talaria::sim
