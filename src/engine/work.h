// Work: one operation bound to buffers, as plain data an executor runs. The seam between runtime and engine.
#pragma once

#include <cstdint>

#include "schedule/chunking.h"
#include "schedule/step.h"

namespace talaria {

// `input` and `output` are user pointers; either may be null where the plan names no such place (Send has no output).
struct Work {
  PlanView plan;
  Chunking chunking;
  const void* input;
  void* output;
  uint64_t scalar;             // PreMulSum: this rank's, an element of the type in the lowest bytes …
  const void* scalar_address;  // … or, if not null, read from here when the work runs
  uint8_t type;         // DataType
  uint8_t reduce;       // ReduceOp; kNone (255) moves bytes
  uint8_t channel;      // Channel
  uint8_t join;         // 1: all streams of a lane meet before the next work begins (collectives); 0: point-to-point
  uint32_t avg_ranks;   // n of Avg
  uint64_t sequence;    // number of the operation on its communicator, for fault records
  uint8_t flip;         // test hook: invert bit 0 of the first output byte when done
  uint8_t direct;       // 1: the plan is of the direct form; its lanes' use counts advance
  uint8_t staged;       // direct form: bit 0 my input, bit 1 my output must be staged (the owner's decision)
  uint8_t fused;        // FusedPath that may carry out the plan; 0: none. Set by the device engine's launcher
  uint8_t operation;    // Operation, for fault texts
  uint8_t reserved[3];
};

}  // namespace talaria
