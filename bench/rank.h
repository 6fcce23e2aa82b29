// Rank: what a thread holds for each rank it drives.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <memory>

#include "device.h"
#include "operation.h"
#include "report.h"

namespace talaria::bench {

// Bytes before and after each buffer that nobody may touch.
inline constexpr size_t kGuardBytes = 256;

struct Rank {
  int number;
  std::unique_ptr<Device> device;
  std::byte* input_memory;  // guard, buffer, guard
  std::byte* output_memory;
  ncclComm_t communicator;
  ncclRedOp_t reduction = ncclSum;  // of the combination that runs
};

// Where one call's input and output lie, and the buffer that holds the output.
struct Buffers {
  std::byte* input;
  std::byte* output;
  std::byte* begin;
  size_t bytes;
};

inline Place place_of(const Rank& rank, const Case& row, int nranks) {
  return {rank.number, nranks, row.root, row.counts};
}

// In place everything lies in the output buffer. Operations that cannot do it use two buffers always.
inline Buffers buffers_of(const Rank& rank, const Operation& operation, const Place& place, const Case& row,
                          bool in_place) {
  std::byte* const begin = rank.output_memory + kGuardBytes;
  if (in_place && operation.in_place) {
    return {begin + operation.input_offset(place) * row.type->bytes,
            begin + operation.output_offset(place) * row.type->bytes, begin, row.bytes()};
  }
  return {rank.input_memory + kGuardBytes, begin, begin, row.counts.receive * row.type->bytes};
}

}  // namespace talaria::bench
