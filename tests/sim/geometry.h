// Geometry: how large a rank's buffers are for an operation, and where they lie when the call is in place.
#pragma once

#include <cstdint>

#include "schedule/collective.h"

namespace talaria::sim {

struct Extent {
  uint64_t input_elements;
  uint64_t output_elements;
  bool may_be_in_place;
  // In place, relative to the start of the larger buffer.
  uint64_t input_first;
  uint64_t output_first;
};

inline Extent extent_of(const Collective& collective, uint32_t nranks, uint32_t rank) {
  const uint64_t count = collective.count;
  const bool is_root = collective.root == static_cast<int32_t>(rank);
  const uint64_t all = is_root ? count * nranks : 0;  // the root's side of a gather or scatter
  switch (collective.operation) {
    case Operation::kAllReduce: return {count, count, true, 0, 0};
    case Operation::kAllGather: return {count, count * nranks, true, rank * count, 0};
    case Operation::kReduceScatter: return {count * nranks, count, true, 0, rank * count};
    case Operation::kBroadcast: return {is_root ? count : 0, count, true, 0, 0};
    case Operation::kAlltoAll: return {count * nranks, count * nranks, false, 0, 0};
    case Operation::kReduce: return {count, is_root ? count : 0, is_root, 0, 0};
    case Operation::kGather: return {count, all, is_root, rank * count, 0};
    case Operation::kScatter: return {all, count, is_root, 0, rank * count};
    case Operation::kSend: return {count, is_root ? count : 0, false, 0, 0};  // to itself: a copy
    case Operation::kRecv: return {0, count, false, 0, 0};
  }
  return {};
}

}  // namespace talaria::sim
